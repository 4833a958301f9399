/* maze.h - the verbs below `bjepa maze`. */
#ifndef BJEPA_MAZE_H
#define BJEPA_MAZE_H

int cmd_maze_audit(int argc, char **argv);
int cmd_maze_data(int argc, char **argv);
int cmd_maze_drive(int argc, char **argv);
int cmd_maze_graph(int argc, char **argv);
int cmd_maze_generate(int argc, char **argv);
int cmd_maze_show(int argc, char **argv);
int cmd_maze_emit(int argc, char **argv);
int cmd_maze_reveal(int argc, char **argv);
int cmd_maze_verify(int argc, char **argv);

#endif
