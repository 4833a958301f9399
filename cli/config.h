/* config.h - the verbs of `bjepa config`. */
#ifndef BJEPA_CONFIG_H
#define BJEPA_CONFIG_H

int cmd_config_show(int argc, char **argv);
int cmd_config_check(int argc, char **argv);
int cmd_config_diff(int argc, char **argv);
int cmd_config_arms(int argc, char **argv);
int cmd_config_recipes(int argc, char **argv);
int cmd_config_keys(int argc, char **argv);

#endif
