/* cmd_gallery.c - bjepa gallery: the table of its subcommands. */
#include "cli.h"
#include "gallery.h"
#include "verbs.h"

int cmd_gallery(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"lock", "select and draw cases without reading any future", cmd_gallery_lock},
        {"draw", "verify the locked cases, then add the actual outcomes", cmd_gallery_draw},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "gallery",
        .summary = "select and draw cases without reading any future, then add the actual outcomes",
        .examples = "bjepa gallery lock runs/world --data val.bjc --out gallery\n"
                    "bjepa gallery draw gallery --data val.bjc --png\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
