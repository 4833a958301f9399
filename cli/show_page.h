/* show_page.h - opens a page in the user's browser if there is one. */
#ifndef BJEPA_SHOW_PAGE_H
#define BJEPA_SHOW_PAGE_H

/* Starts xdg-open and does not wait for it. Does nothing unless stdout is a terminal and DISPLAY or
 * WAYLAND_DISPLAY is set. */
void cli_show_page(const char *path);

#endif
