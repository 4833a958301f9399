/* arch.c - the paper's architectures and the check every model passes before it is built. */
#include <math.h>

#include "core/status.h"

bj_arch bj_arch_paper(void) {
    return (bj_arch){.kind = BJ_MODEL_BRANCH,
                     .scales = BJ_SCALES_FIXED,
                     .weighting = BJ_WEIGHTS_ROUTER,
                     .obs = 50,
                     .fut = 60,
                     .neighbors = 16,
                     .polylines = 48,
                     .points = 10,
                     .embed = 256,
                     .heads = 4,
                     .token_hidden = 512,
                     .latent = 512,
                     .proj_hidden = 512,
                     .atoms = 6,
                     .atom_hidden = 512,
                     .router_hidden = 256,
                     .decoder_hidden = 512,
                     .trunk = 2180,
                     .dt = 0.1};
}

bj_arch bj_arch_point(void) {
    bj_arch arch = bj_arch_paper();
    arch.atoms = 1;
    arch.atom_hidden = 3204; /* as many parameters as six atoms and a router, within 130 */
    return arch;
}

bj_arch bj_arch_output_only(void) {
    bj_arch arch = bj_arch_paper();
    arch.kind = BJ_MODEL_OUTPUT_ONLY;
    return arch;
}

bj_status bj_arch_check(const bj_arch *arch, bj_error *err) {
    const struct {
        const char *name;
        int value, least, most;
    } range[] = {
        {"obs", arch->obs, 1, 10000},
        {"fut", arch->fut, 2, 10000},
        {"neighbors", arch->neighbors, 1, 4096},
        {"polylines", arch->polylines, 0, 65536},
        {"points", arch->points, 1, 1024},
        {"embed", arch->embed, 1, 16384},
        {"heads", arch->heads, 1, 256},
        {"token_hidden", arch->token_hidden, 1, 65536},
        {"latent", arch->latent, 1, 65536},
        {"proj_hidden", arch->proj_hidden, 1, 65536},
        {"atoms", arch->atoms, 1, BJ_MAX_ATOMS},
        {"atom_hidden", arch->atom_hidden, 1, 65536},
        {"router_hidden", arch->router_hidden, 1, 65536},
        {"decoder_hidden", arch->decoder_hidden, 1, 65536},
        {"trunk", arch->trunk, 1, 65536},
    };
    if (arch->kind != BJ_MODEL_BRANCH && arch->kind != BJ_MODEL_OUTPUT_ONLY)
        return BJ_FAIL(err, BJ_EARG, "architecture: kind is %d, expected branch (0) or "
                       "output-only (1)", (int)arch->kind);
    if (arch->scales < BJ_SCALES_FIXED || arch->scales > BJ_SCALES_COMPONENT)
        return BJ_FAIL(err, BJ_EARG, "architecture: scales is %d, expected 0, 1 or 2",
                       (int)arch->scales);
    if (arch->weighting != BJ_WEIGHTS_ROUTER && arch->weighting != BJ_WEIGHTS_UNIFORM)
        return BJ_FAIL(err, BJ_EARG, "architecture: weighting is %d, expected router (0) or "
                       "uniform (1)", (int)arch->weighting);
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (range[i].value < range[i].least || range[i].value > range[i].most)
            return BJ_FAIL(err, BJ_EARG, "architecture: %s is %d, expected %d to %d", range[i].name,
                           range[i].value, range[i].least, range[i].most);
    if (arch->embed % arch->heads)
        return BJ_FAIL(err, BJ_EARG, "architecture: embed is %d, expected a multiple of heads, %d",
                       arch->embed, arch->heads);
    if (!(arch->dt > 0) || !isfinite(arch->dt))
        return BJ_FAIL(err, BJ_EARG, "architecture: dt is %g, expected a positive number of seconds",
                       arch->dt);
    if (arch->kind == BJ_MODEL_OUTPUT_ONLY) {
        if (arch->fut % BJ_SEGMENT_STEPS)
            return BJ_FAIL(err, BJ_EARG, "architecture: fut is %d, expected a multiple of %d for "
                           "the output-only control", arch->fut, BJ_SEGMENT_STEPS);
        if (arch->scales != BJ_SCALES_FIXED)
            return BJ_FAIL(err, BJ_EARG,
                           "architecture: learned scales need a branch model, found output-only");
    }
    return BJ_OK;
}

bj_status bj_arch_fits(const bj_arch *arch, const bj_arch *scenes, bj_error *err) {
    const struct {
        const char *name;
        double model, scenes;
    } sizes[] = {
        {"observed steps", arch->obs, scenes->obs},
        {"future steps", arch->fut, scenes->fut},
        {"neighbors", arch->neighbors, scenes->neighbors},
        {"polylines", arch->polylines, scenes->polylines},
        {"points of a polyline", arch->points, scenes->points},
        {"seconds between steps", arch->dt, scenes->dt},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].model != sizes[i].scenes)
            return BJ_FAIL(err, BJ_EFORMAT, "the model has %g %s, the scenes have %g",
                           sizes[i].model, sizes[i].name, sizes[i].scenes);
    return BJ_OK;
}
