// A C++ program on the installed library: one small network, one scene, K weighted futures.
#include <branchjepa/branchjepa.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

int fail(const char *what, const bj_error &err) {
    std::fprintf(stderr, "%s: %s\n", what, err.message);
    return 1;
}

} // namespace

int main() {
    bj_arch arch = bj_arch_paper();
    arch.embed = 32;
    arch.latent = arch.atom_hidden = arch.decoder_hidden = 48;
    arch.token_hidden = arch.proj_hidden = arch.router_hidden = 40;

    bj_error err;
    bj_model *model = nullptr;
    bj_scenes *scenes = nullptr;
    bj_predictor *predictor = nullptr;
    bj_predictor_options options = bj_predictor_options();
    options.max_batch = 2;
    options.threads = 1;
    if (bj_model_create(&model, &arch, 1, &err)) return fail("model", err);
    if (bj_scenes_synthetic(&scenes, &arch, 2, 1, &err)) return fail("scenes", err);
    if (bj_predictor_create(&predictor, model, &options, &err)) return fail("predictor", err);

    const std::size_t rows = 2 * static_cast<std::size_t>(arch.atoms);
    std::vector<bj_real> weights(rows), paths(rows * static_cast<std::size_t>(arch.fut) * 2);
    if (bj_predict(predictor, bj_scenes_batch(scenes), weights.data(), paths.data(), nullptr, &err))
        return fail("predict", err);

    double sum = 0, largest = 0;
    for (bj_real w : weights) sum += w;
    for (bj_real x : paths) {
        if (!std::isfinite(x)) return 1;
        if (std::fabs(x) > largest) largest = std::fabs(x);
    }
    bj_predictor_free(predictor);
    bj_scenes_free(scenes);
    bj_model_free(model);
    std::printf("branchjepa %s: weights of two scenes sum to %.6f\n", bj_version(), sum);
    return !(std::fabs(sum - 2) < 1e-5) || !(largest > 0);
}
