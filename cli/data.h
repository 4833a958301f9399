/* data.h - the subcommands of `bjepa data`. argv[0] is the subcommand, and the result is the exit
 * code. */
#ifndef BJEPA_DATA_H
#define BJEPA_DATA_H

int cmd_data_info(int argc, char **argv);
int cmd_data_prep(int argc, char **argv);
int cmd_data_show(int argc, char **argv);
int cmd_data_split(int argc, char **argv);
int cmd_data_verify(int argc, char **argv);

#endif
