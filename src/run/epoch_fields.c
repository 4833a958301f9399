/* epoch_fields.c - the table of epoch_fields.h. Test: tests/run/test_history.c */
#include "run/epoch_fields.h"

#include <string.h>

#define AT(member) offsetof(bj_epoch, member)
#define IN(group, name)                                                                            \
    { #group "." #name, #group "/" #name, BJ_EPOCH_REAL, AT(group.name), 0, 0 }
#define OF_LATENTS(name)                                                                           \
    { "health." #name, "health/" #name, BJ_EPOCH_REAL, AT(health.name), 0, 1 }
#define OF_SCENES(group, name)                                                                     \
    { #group "." #name, #group "/" #name, BJ_EPOCH_REAL, AT(group.name), 1, 0 }
#define OF_MAZES(name, spread)                                                                     \
    { "maze." #name, "maze/" #name, BJ_EPOCH_REAL, AT(maze.name), 1, spread }
#define LEADERBOARD(name)                                                                          \
    { "dev." #name, "dev/" #name, BJ_EPOCH_REAL, AT(dev.name), BJ_EPOCH_ADDED, 0 }
#define REGULARIZER(name)                                                                          \
    { "train." #name, "train/" #name, BJ_EPOCH_REAL, AT(train.name), BJ_EPOCH_ADDED, 0 }

const bj_epoch_field bj_epoch_fields[] = {
    {"step", NULL, BJ_EPOCH_STEP, AT(step), 0, 0},
    {"epoch", NULL, BJ_EPOCH_INT, AT(epoch), 0, 0},
    {"wall_s", NULL, BJ_EPOCH_REAL, AT(wall_s), 0, 0},
    {"lr", "opt/lr", BJ_EPOCH_REAL, AT(lr), 0, 0},
    {"grad_norm", "opt/grad_norm", BJ_EPOCH_REAL, AT(grad_norm), 0, 0},
    {"scenes_per_s", "opt/scenes_per_s", BJ_EPOCH_REAL, AT(scenes_per_s), 0, 0},
    {"best", NULL, BJ_EPOCH_FLAG, AT(best), 0, 0},
    {"eligible", NULL, BJ_EPOCH_FLAG, AT(eligible), 0, 0},

    {"train.loss", "train/loss", BJ_EPOCH_REAL, AT(train.total), 0, 0},
    IN(train, latent),
    IN(train, decoded),
    IN(train, rec),
    IN(train, router),
    IN(train, usage),
    IN(train, variance),
    IN(train, rank),
    IN(train, participation),
    REGULARIZER(sigreg),
    REGULARIZER(vicreg_variance),
    REGULARIZER(vicreg_covariance),

    {"dev.scenes", NULL, BJ_EPOCH_REAL, AT(dev.scenes), 0, 0},
    IN(dev, traj_es),
    IN(dev, traj_obs),
    IN(dev, traj_disp),
    IN(dev, end_es),
    IN(dev, latent_es),
    IN(dev, exp_ade),
    IN(dev, exp_fde),
    IN(dev, top1_ade),
    IN(dev, top1_fde),
    IN(dev, top1_mr),
    IN(dev, min_ade),
    IN(dev, min_fde),
    IN(dev, min_mr),
    IN(dev, brier),
    IN(dev, ece),
    IN(dev, exp_entropy),
    IN(dev, active_heads),
    IN(dev, neff_collision),
    IN(dev, dedup_support),
    LEADERBOARD(brier_min_fde_1),
    LEADERBOARD(min_ade_6),
    LEADERBOARD(min_fde_6),
    LEADERBOARD(mr_6),
    LEADERBOARD(brier_min_fde_6),

    OF_LATENTS(mean_std),
    OF_LATENTS(low_std_fraction),
    OF_LATENTS(entropy_rank),
    OF_LATENTS(participation),

    {"usage.least", "dev/usage_least", BJ_EPOCH_REAL, AT(usage_least), 0, 0},
    {"usage.most", "dev/usage_most", BJ_EPOCH_REAL, AT(usage_most), 0, 0},
    {"decoder.ade", "dev/decoder_ade", BJ_EPOCH_REAL, AT(decoder_ade), 0, 0},
    {"decoder.fde", "dev/decoder_fde", BJ_EPOCH_REAL, AT(decoder_fde), 0, 0},

    OF_MAZES(plan_all, 0),
    OF_MAZES(verified_route, 0),
    OF_MAZES(macro_precision, 0),
    OF_MAZES(macro_precision_self, 0),
    OF_MAZES(held_recall, 0),
    OF_MAZES(cov_r, 0),
    OF_MAZES(predicted_edges, 0),
    OF_MAZES(separated, 1),
    OF_MAZES(closest, 1),
    {"maze.cov_three", "maze/cov_three", BJ_EPOCH_REAL, AT(maze.cov_three), BJ_EPOCH_ADDED, 0},
    {"maze.heads_three", "maze/heads_three", BJ_EPOCH_REAL, AT(maze.heads_three), BJ_EPOCH_ADDED,
     0},

    OF_SCENES(encoder, attention_tokens),
    OF_SCENES(encoder, context_norm),

    {"exchange.scenes", NULL, BJ_EPOCH_REAL, AT(exchange.scenes), 1, 0},
    OF_SCENES(exchange, plain),
    OF_SCENES(exchange, map),
    OF_SCENES(exchange, neighbors),
    OF_SCENES(exchange, focal),
};

const int bj_epoch_field_count = (int)(sizeof bj_epoch_fields / sizeof *bj_epoch_fields);

double bj_epoch_real(const bj_epoch *row, const bj_epoch_field *field) {
    double value;
    memcpy(&value, (const char *)row + field->offset, sizeof value);
    return value;
}

int bj_epoch_field_in(const bj_epoch_field *field, const char *group) {
    const size_t size = strlen(group);
    return !strncmp(field->path, group, size) && field->path[size] == '.';
}

const char *bj_epoch_field_name(const bj_epoch_field *field) {
    const char *dot = strrchr(field->path, '.');
    return dot ? dot + 1 : field->path;
}
