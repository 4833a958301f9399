/* cmd_gallery.c - bjepa gallery: the table of its verbs. */
#include "cli.h"
#include "gallery.h"
#include "verbs.h"

int cmd_gallery(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"lock", "choose cases and draw them before any future is read", cmd_gallery_lock},
        {"draw", "verify what was locked, then add what happened", cmd_gallery_draw},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "gallery",
        .summary = "pictures of forecasts that could not be picked with hindsight",
        .examples = "bjepa gallery lock runs/world --data val.bjc --out gallery\n"
                    "bjepa gallery draw gallery --data val.bjc --png\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
