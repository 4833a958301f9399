/* cmd_data.c - bjepa data: the table of its subcommands. */
#include "cli.h"
#include "data.h"
#include "verbs.h"

int cmd_data(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"prep", "create a cache of training scenes from Argoverse 2 folders", cmd_data_prep},
        {"info", "print the content of a cache", cmd_data_info},
        {"verify", "recompute every checksum of a cache", cmd_data_verify},
        {"show", "print, draw or extract one scene", cmd_data_show},
        {"split", "count or list the fit and development scenes", cmd_data_split},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "data",
        .summary = "create and inspect caches of Argoverse 2 scenes",
        .examples = "bjepa data prep --av2 /data/av2/train --out train.bjc\n"
                    "bjepa data info train.bjc\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
