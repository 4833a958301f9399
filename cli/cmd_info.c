/* cmd_info.c - bjepa info: the architectures and their parameter counts, or one model file.
 *
 * All numbers come from bj_arch_* and bj_arch_counts, which the engine also uses. As in the paper,
 * the moving-average copy of the encoder is not counted.
 */
#include "cli.h"
#include "info.h"

#include <stdio.h>
#include <string.h>

typedef struct model {
    const char *name, *title;
    bj_arch (*arch)(void);
} model;

static bj_arch maze_branch(void) { return bj_arch_maze(BJ_MODEL_BRANCH, 0); }
static bj_arch maze_standard(void) { return bj_arch_maze(BJ_MODEL_BRANCH, 1); }
static bj_arch maze_fused(void) { return bj_arch_maze(BJ_MODEL_FUSED, 0); }
static bj_arch maze_variational(void) { return bj_arch_maze(BJ_MODEL_VARIATIONAL, 0); }
static bj_arch maze_codebook(void) { return bj_arch_maze(BJ_MODEL_CODEBOOK, 0); }

/* In the order of ARCH_WORDS: architectures for scenes, then for mazes. */
static const model models[] = {
    {"paper", "weighted branches", bj_arch_paper},
    {"point", "one wide branch, no router", bj_arch_point},
    {"outputonly", "one latent, several outputs", bj_arch_output_only},
    {"branch", "mazes: weighted branches, also as a mixture density", maze_branch},
    {"standard", "mazes: one wide branch, no router", maze_standard},
    {"fused", "mazes: the weighted mean of branches", maze_fused},
    {"variational", "mazes: one network whose inputs are the context and a Gaussian variable",
     maze_variational},
    {"codebook", "mazes: one wide branch, with eight codes that all contexts share", maze_codebook},
};
enum { MODELS = sizeof models / sizeof models[0], SCENE_MODELS = 3 };
#define ARCH_WORDS "paper|point|outputonly|branch|standard|fused|variational|codebook"

typedef struct info_options {
    int arch; /* index into models, -1: all */
    int json;
} info_options;

static int parse(info_options *o, int argc, char **argv, int *operands) {
    const cli_option options[] = {
        {"arch", 0, CLI_CHOICE, ARCH_WORDS, &o->arch, 0, 0,
         "print one architecture and its tensor sizes"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "info",
        .summary = "describe a model file, or list the architectures and their parameter counts",
        .operands = "[CHECKPOINT]",
        .max_operands = 1,
        .examples = "bjepa info\n"
                    "bjepa info builtin\n"
                    "bjepa info --arch paper\n"
                    "bjepa info --json\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, operands);
    if (code == CLI_CONTINUE && *operands && o->arch >= 0)
        return cli_misuse("info", "found both --arch and a model file, expected only one of them");
    return code;
}

/* --------------------------------------------------------------------------------------- counts */

/* The rows of the count table, used for text and JSON output. */
typedef struct count_row {
    const char *key, *title;
    size_t (*of)(const bj_counts *counts);
} count_row;

static size_t encoder(const bj_counts *c) { return c->encoder; }
static size_t atoms(const bj_counts *c) { return c->atoms; }
static size_t router(const bj_counts *c) { return c->router; }
static size_t decoder(const bj_counts *c) { return c->decoder; }
static size_t downstream(const bj_counts *c) { return c->downstream; }
static size_t total(const bj_counts *c) { return c->total; }
static size_t atoms_router(const bj_counts *c) { return c->atoms + c->router; }

static const count_row rows[] = {
    {"encoder", "encoder", encoder},
    {"atoms", "atoms", atoms},
    {"router", "router", router},
    {"decoder", "decoder", decoder},
    {"downstream", "downstream", downstream},
    {"total", "total", total},
    {"atoms_router", "atoms + router", atoms_router},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_counts(const bj_counts *counts, int n) {
    char text[CLI_COUNT_SIZE];
    for (int r = 0; r < ROWS; r++) {
        printf("%-16s", rows[r].title);
        for (int i = 0; i < n; i++) printf("%14s", cli_count(text, rows[r].of(&counts[i])));
        putchar('\n');
    }
}

/* ----------------------------------------------------------------------------------------- text */

static void print_table(int first, int last) {
    bj_counts counts[MODELS];
    printf("%-16s", "parameters");
    for (int i = first; i < last; i++) {
        const bj_arch arch = models[i].arch();
        counts[i - first] = bj_arch_counts(&arch);
        printf("%14s", models[i].name);
    }
    putchar('\n');
    print_counts(counts, last - first);
    putchar('\n');
}

static void print_all(void) {
    print_table(0, SCENE_MODELS);
    print_table(SCENE_MODELS, MODELS);
    for (int i = 0; i < MODELS; i++) printf("%-11s %s\n", models[i].name, models[i].title);
    puts("downstream  everything except the encoder");
}

static void print_maze(const bj_arch *a) {
    printf("state           %d numbers, %d of them with %d octaves of sines and cosines\n",
           a->state, a->waves, a->octaves);
    printf("network         %d - %d - %d, projection %d - %d\n",
           a->state + 2 * a->waves * a->octaves, a->embed, a->embed, a->proj_hidden, a->latent);
    if (a->kind == BJ_MODEL_BRANCH || a->kind == BJ_MODEL_FUSED)
        printf("atoms           %d x (%d - %d - %d)\n", a->atoms, a->latent, a->atom_hidden,
               a->latent);
    if (a->kind == BJ_MODEL_VARIATIONAL)
        printf("prior           %d - %d - 2 x %d\nposterior       %d - %d - 2 x %d\n"
               "generator       %d - %d - %d\n",
               a->latent, a->noise_hidden, a->noise, 2 * a->latent, a->noise_hidden, a->noise,
               a->latent + a->noise, a->atom_hidden, a->latent);
    if (a->kind == BJ_MODEL_CODEBOOK)
        printf("atom            %d - %d - %d\ncodes           %d, fitted\n", a->latent,
               a->atom_hidden, a->latent, a->atoms);
    puts("\nparameters");
}

static void print_one(const model *m) {
    const bj_arch a = m->arch();
    const bj_counts counts = bj_arch_counts(&a);
    const int outputs = 2 * a.fut;
    printf("%s: %s (K = %d)\n\n", m->name, m->title, a.atoms);
    if (a.encoder != BJ_ENCODER_SCENE) {
        print_maze(&a);
        print_counts(&counts, 1);
        return;
    }
    printf("focal track     %d steps x %d features, GRU %d - %d\n", a.obs, BJ_FOCAL_FEATURES,
           BJ_FOCAL_FEATURES, a.embed);
    printf("neighbors       up to %d, MLP %d - %d - %d\n", a.neighbors, a.obs * BJ_FOCAL_FEATURES,
           a.token_hidden, a.embed);
    printf("polylines       up to %d of %d points, MLP %d - %d - %d\n", a.polylines, a.points,
           a.points * BJ_POLYLINE_FEATURES, a.token_hidden, a.embed);
    printf("attention       one query, %d heads, %d wide\n", a.heads, a.embed);
    printf("projection      %d - %d - %d\n", 2 * a.embed, a.proj_hidden, a.latent);
    if (a.kind == BJ_MODEL_OUTPUT_ONLY)
        printf("atom            %d - %d - %d\n", a.latent, a.atom_hidden, a.latent);
    else
        printf("atoms           %d x (%d - %d - %d)\n", a.atoms, a.latent, a.atom_hidden, a.latent);
    if (a.atoms > 1) printf("router          %d - %d - %d\n", a.latent, a.router_hidden, a.atoms);
    if (a.kind == BJ_MODEL_OUTPUT_ONLY)
        printf("decoder         trunk %d - %d, base %d - %d, "
               "%d residual heads, %d x (%d + %d) scales\n",
               a.latent, a.trunk, a.trunk, outputs, a.atoms, a.atoms, a.fut,
               a.fut / BJ_SEGMENT_STEPS);
    else
        printf("decoder         %d - %d - %d, shared by all atoms\n", a.latent, a.decoder_hidden,
               outputs);
    printf("future          %d steps of %g s, x and y\n\nparameters\n", a.fut, a.dt);
    print_counts(&counts, 1);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void print_json_model(const model *m) {
    const bj_arch a = m->arch();
    const bj_counts counts = bj_arch_counts(&a);
    const struct {
        const char *key;
        int value;
    } sizes[] = {
        {"obs", a.obs},
        {"fut", a.fut},
        {"neighbors", a.neighbors},
        {"polylines", a.polylines},
        {"points", a.points},
        {"embed", a.embed},
        {"heads", a.heads},
        {"token_hidden", a.token_hidden},
        {"latent", a.latent},
        {"proj_hidden", a.proj_hidden},
        {"atoms", a.atoms},
        {"atom_hidden", a.atom_hidden},
        {"router_hidden", a.router_hidden},
        {"decoder_hidden", a.decoder_hidden},
        {"trunk", a.trunk},
        {"state", a.state},
        {"waves", a.waves},
        {"octaves", a.octaves},
        {"noise", a.noise},
        {"noise_hidden", a.noise_hidden},
    };
    static const char *const kinds[] = {"branch", "output_only", "fused", "variational",
                                        "codebook"};
    printf("    {\"name\": \"%s\", \"kind\": \"%s\",\n     \"arch\": {", m->name, kinds[a.kind]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        printf("\"%s\": %d, ", sizes[i].key, sizes[i].value);
    printf("\"dt\": %.15g},\n     \"parameters\": {", a.dt);
    for (int r = 0; r < ROWS; r++)
        printf("%s\"%s\": %zu", r ? ", " : "", rows[r].key, rows[r].of(&counts));
    printf("}}");
}

static void print_json(int first, int last) {
    printf("{\"schema\": 1, \"type\": \"info\", \"version\": \"%s\",\n  \"models\": [\n",
           bj_version());
    for (int i = first; i <= last; i++) {
        print_json_model(&models[i]);
        puts(i < last ? "," : "");
    }
    puts("  ]}");
}

int cmd_info(int argc, char **argv) {
    info_options o = {.arch = -1};
    int operands;
    const int result = parse(&o, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (operands) return info_model(argv[1], o.json);
    if (o.json) print_json(o.arch < 0 ? 0 : o.arch, o.arch < 0 ? MODELS - 1 : o.arch);
    else if (o.arch < 0) print_all();
    else print_one(&models[o.arch]);
    return CLI_OK;
}
