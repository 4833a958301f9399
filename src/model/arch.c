/* arch.c - default architectures and validation of architectures. */
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
    arch.atom_hidden = 3204; /* the parameter count differs by at most 130 from that of six atoms
                                and a router */
    return arch;
}

bj_arch bj_arch_output_only(void) {
    bj_arch arch = bj_arch_paper();
    arch.kind = BJ_MODEL_OUTPUT_ONLY;
    return arch;
}

bj_arch bj_arch_maze(bj_model_kind kind, int one_atom) {
    bj_arch arch = {.kind = kind,
                    .embed = 256,
                    .latent = 512,
                    .proj_hidden = 512,
                    .atoms = one_atom ? 1 : 8,
                    .atom_hidden = 512,
                    .router_hidden = 256,
                    .dt = 0.1,
                    .encoder = BJ_ENCODER_STATE,
                    .state = 2,
                    .waves = 2,
                    .octaves = 4};
    /* The parameter count differs by at most 400 from that of eight branches and their router. */
    if (one_atom || kind == BJ_MODEL_CODEBOOK) arch.atom_hidden = 4230;
    if (kind == BJ_MODEL_VARIATIONAL) {
        arch.noise = 32;
        arch.noise_hidden = 512;
        arch.atom_hidden = 3294;
    }
    return arch;
}

/* Encoder kinds that use a size, as flags. For all other kinds, the size must be 0. */
enum {
    SCENE = 1 << BJ_ENCODER_SCENE,
    STATE = 1 << BJ_ENCODER_STATE,
    IMAGE = 1 << BJ_ENCODER_IMAGE
};
enum { SEEN = STATE | IMAGE, ALL = SCENE | SEEN };

/* Checks the sizes that depend on the model kind. */
static bj_status check_kind(const bj_arch *arch, bj_error *err) {
    const int scene = arch->encoder == BJ_ENCODER_SCENE;
    const int variational = arch->kind == BJ_MODEL_VARIATIONAL;
    if (scene && arch->kind > BJ_MODEL_OUTPUT_ONLY)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: kind is %d, "
                       "expected branch (0) or output-only (1) for scenes",
                       (int)arch->kind);
    if (!scene && arch->kind == BJ_MODEL_OUTPUT_ONLY)
        return BJ_FAIL(
            err, BJ_EARG,
            "architecture: an output-only model needs a scene encoder, found encoder %d",
            (int)arch->encoder);
    if ((arch->noise != 0) != variational || (arch->noise_hidden != 0) != variational)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: noise is %d and noise_hidden is %d, "
                       "expected sizes for a variational model and 0 for others",
                       arch->noise, arch->noise_hidden);
    if (arch->waves > arch->state)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: waves is %d, "
                       "expected at most %d, the number of state components",
                       arch->waves, arch->state);
    if (arch->height % 16 || arch->width % 16)
        return BJ_FAIL(err, BJ_EARG, "architecture: images are %d x %d, expected multiples of 16",
                       arch->height, arch->width);
    return BJ_OK;
}

bj_status bj_arch_check(const bj_arch *arch, bj_error *err) {
    const struct {
        const char *name;
        int value, least, most, kinds;
    } range[] = {
        {"obs", arch->obs, 1, 10000, SCENE},
        {"fut", arch->fut, 2, 10000, SCENE},
        {"neighbors", arch->neighbors, 1, 4096, SCENE},
        {"polylines", arch->polylines, 0, 65536, SCENE},
        {"points", arch->points, 1, 1024, SCENE},
        {"embed", arch->embed, 1, 16384, ALL},
        {"heads", arch->heads, 1, 256, SCENE},
        {"token_hidden", arch->token_hidden, 1, 65536, SCENE},
        {"latent", arch->latent, 1, 65536, ALL},
        {"proj_hidden", arch->proj_hidden, 1, 65536, ALL},
        {"atoms", arch->atoms, 1, BJ_MAX_ATOMS, ALL},
        {"atom_hidden", arch->atom_hidden, 1, 65536, ALL},
        {"router_hidden", arch->router_hidden, 1, 65536, ALL},
        {"decoder_hidden", arch->decoder_hidden, 1, 65536, SCENE},
        {"trunk", arch->trunk, 1, 65536, SCENE},
        {"state", arch->state, 1, 4096, STATE},
        {"waves", arch->waves, 0, 4096, STATE},
        {"octaves", arch->octaves, 0, 16, STATE},
        {"height", arch->height, 16, 4096, IMAGE},
        {"width", arch->width, 16, 4096, IMAGE},
        {"channels", arch->channels, 1, 16, IMAGE},
        {"patch_in", arch->patch_in, 1, 4096, IMAGE},
        {"patch_out", arch->patch_out, 1, 4096, IMAGE},
        {"action", arch->action, 0, 4096, SEEN},
        {"noise", arch->noise, 0, 4096, SEEN},
        {"noise_hidden", arch->noise_hidden, 0, 65536, SEEN},
    };
    if (arch->kind < BJ_MODEL_BRANCH || arch->kind > BJ_MODEL_CODEBOOK)
        return BJ_FAIL(err, BJ_EARG, "architecture: kind is %d, expected 0 to %d", (int)arch->kind,
                       (int)BJ_MODEL_CODEBOOK);
    if (arch->encoder < BJ_ENCODER_SCENE || arch->encoder > BJ_ENCODER_IMAGE)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: encoder is %d, "
                       "expected scene (0), state (1) or image (2)",
                       (int)arch->encoder);
    if (arch->scales < BJ_SCALES_FIXED || arch->scales > BJ_SCALES_COMPONENT)
        return BJ_FAIL(err, BJ_EARG, "architecture: scales is %d, expected 0, 1 or 2",
                       (int)arch->scales);
    if (arch->weighting != BJ_WEIGHTS_ROUTER && arch->weighting != BJ_WEIGHTS_UNIFORM)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: weighting is %d, "
                       "expected router (0) or uniform (1)",
                       (int)arch->weighting);
    for (size_t i = 0; i < sizeof range / sizeof *range; i++) {
        const int used = range[i].kinds >> arch->encoder & 1;
        const int least = used ? range[i].least : 0, most = used ? range[i].most : 0;
        if (range[i].value < least || range[i].value > most)
            return BJ_FAIL(err, BJ_EARG, "architecture: %s is %d, expected %d to %d", range[i].name,
                           range[i].value, least, most);
    }
    BJ_TRY(check_kind(arch, err));
    if (arch->heads && arch->embed % arch->heads)
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: embed is %d, "
                       "expected a multiple of the number of heads (%d)",
                       arch->embed, arch->heads);
    if (!(arch->dt > 0) || !isfinite(arch->dt))
        return BJ_FAIL(err, BJ_EARG,
                       "architecture: dt is %g, expected a positive number of seconds", arch->dt);
    if (arch->kind == BJ_MODEL_OUTPUT_ONLY) {
        if (arch->fut % BJ_SEGMENT_STEPS)
            return BJ_FAIL(err, BJ_EARG,
                           "architecture: fut is %d, "
                           "expected a multiple of %d for the output-only control",
                           arch->fut, BJ_SEGMENT_STEPS);
        if (arch->scales != BJ_SCALES_FIXED)
            return BJ_FAIL(err, BJ_EARG,
                           "architecture: learned scales need a branch model, "
                           "found an output-only model");
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
        {"points per polyline", arch->points, scenes->points},
        {"seconds between steps", arch->dt, scenes->dt},
        {"values per state", arch->state, scenes->state},
        {"rows per image", arch->height, scenes->height},
        {"columns per image", arch->width, scenes->width},
        {"channels per image", arch->channels, scenes->channels},
    };
    static const char *const seen[] = {"scenes", "states", "images"};
    if (arch->encoder != scenes->encoder)
        return BJ_FAIL(err, BJ_EFORMAT, "the model expects %s, but the data has %s",
                       seen[arch->encoder], seen[scenes->encoder]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].model != sizes[i].scenes)
            return BJ_FAIL(err, BJ_EFORMAT, "the model has %g %s, but the scenes have %g",
                           sizes[i].model, sizes[i].name, sizes[i].scenes);
    return BJ_OK;
}
