int x; /* TODO */
int y; 
