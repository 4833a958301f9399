/* epoch_fields.c - the table of epoch_fields.h. Test: tests/run/test_history.c */
#include "run/epoch_fields.h"

#include <string.h>

#define AT(member) offsetof(bj_epoch, member)
#define IN(group, name)                                                                            \
    { #group "." #name, #group "/" #name, BJ_EPOCH_REAL, AT(group.name) }

const bj_epoch_field bj_epoch_fields[] = {
    {"step", NULL, BJ_EPOCH_STEP, AT(step)},
    {"epoch", NULL, BJ_EPOCH_INT, AT(epoch)},
    {"wall_s", NULL, BJ_EPOCH_REAL, AT(wall_s)},
    {"lr", "opt/lr", BJ_EPOCH_REAL, AT(lr)},
    {"grad_norm", "opt/grad_norm", BJ_EPOCH_REAL, AT(grad_norm)},
    {"scenes_per_s", "opt/scenes_per_s", BJ_EPOCH_REAL, AT(scenes_per_s)},
    {"best", NULL, BJ_EPOCH_FLAG, AT(best)},
    {"eligible", NULL, BJ_EPOCH_FLAG, AT(eligible)},

    {"train.loss", "train/loss", BJ_EPOCH_REAL, AT(train.total)},
    IN(train, latent),
    IN(train, decoded),
    IN(train, rec),
    IN(train, router),
    IN(train, usage),
    IN(train, variance),
    IN(train, rank),
    IN(train, participation),

    {"dev.scenes", NULL, BJ_EPOCH_REAL, AT(dev.scenes)},
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

    IN(health, mean_std),
    IN(health, low_std_fraction),
    IN(health, entropy_rank),
    IN(health, participation),

    {"usage.least", "dev/usage_least", BJ_EPOCH_REAL, AT(usage_least)},
    {"usage.most", "dev/usage_most", BJ_EPOCH_REAL, AT(usage_most)},
    {"decoder.ade", "dev/decoder_ade", BJ_EPOCH_REAL, AT(decoder_ade)},
    {"decoder.fde", "dev/decoder_fde", BJ_EPOCH_REAL, AT(decoder_fde)},
};

const int bj_epoch_field_count = (int)(sizeof bj_epoch_fields / sizeof *bj_epoch_fields);

double bj_epoch_real(const bj_epoch *row, const bj_epoch_field *field) {
    double value;
    memcpy(&value, (const char *)row + field->offset, sizeof value);
    return value;
}
