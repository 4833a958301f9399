/* eval_print.c - prints an evaluation as text or as JSON with the schema branchjepa.eval/1
 * (docs/EVALUATE.md). */
#include "eval.h"

#include <math.h>
#include <string.h>

#include "json_out.h"

/* ---------------------------------------------------------------------------------------- text */

/* Prints a number, or a dash for NaN. */
static void print_number(double value, int width, int digits) {
    if (isnan(value)) printf("%*s", width, "-");
    else printf("%*.*f", width, digits, value);
}

/* Prints a title and the values of the named metrics. */
static void print_line(const char *title, const bj_metric_values *v, const char *const *names) {
    printf("%-30s", title);
    for (; *names; names++) {
        const int metric = bj_metric_find(*names);
        print_number(bj_metric_value(v, metric), 10, bj_metric_at(metric).digits);
    }
    putchar('\n');
}

#define LINE(title, ...) print_line(title, v, (const char *const[]){__VA_ARGS__, NULL})

static void print_values(const bj_metric_values *v, int K) {
    printf("%-30s%10.4f = observation %.4f - dispersion %.4f\n", "trajectory Energy Score (m)",
           v->traj_es, v->traj_obs, v->traj_disp);
    LINE("endpoint Energy Score (m)", "end_es");
    LINE("latent Energy Score", "latent_es");
    LINE("expected ADE, FDE (m)", "exp_ade", "exp_fde");
    LINE("top-1 ADE, FDE (m)", "top1_ade", "top1_fde");
    LINE("maneuver Brier score, ECE", "brier", "ece");
    puts("effective number of branches");
    LINE("  by weight", "exp_entropy");
    LINE("  distinct latents (0.10)", "neff_collision");
    LINE("  distinct endpoints (1 m)", "dedup_support");
    printf("%-30s%10.0f of %d\n", "branches above 1 % of weight", v->active_heads, K);
}

/* Prints the metrics of the Argoverse 2 leaderboard and the best of all K branches. */
static void print_leaderboard(const bj_metric_values *v, int K) {
    char all[16];
    snprintf(all, sizeof all, "K = %d", K);
    puts("\nArgoverse 2 leaderboard metrics of the K most probable branches\n"
         "(a diagnostic, because the best branch is chosen with hindsight)");
    printf("%-30s%10s%10s%10s\n", "", "K = 1", "K = 6", K > 6 ? all : "");
    const struct {
        const char *title;
        double one, six, all;
    } rows[] = {{"minADE (m)", v->top1_ade, v->min_ade_6, v->min_ade},
                {"minFDE (m)", v->top1_fde, v->min_fde_6, v->min_fde},
                {"miss rate (2 m)", v->top1_mr, v->mr_6, v->min_mr},
                {"brier-minFDE (m)", v->brier_min_fde_1, v->brier_min_fde_6, NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        printf("%-30s", rows[i].title);
        print_number(rows[i].one, 10, 4);
        print_number(rows[i].six, 10, 4);
        if (K > 6) print_number(rows[i].all, 10, 4);
        putchar('\n');
    }
}

static void print_usage(const eval_result *r) {
    double shares[BJ_MAX_ATOMS];
    bj_evaluator_usage(shares, r->evaluator);
    printf("\n%-30s", "share of weight by branch");
    for (int k = 0; k < r->arch.atoms; k++)
        printf("%s%.4f",
               k && k % 8 == 0 ? "\n                              "
               : k             ? " "
                               : "",
               shares[k]);
    putchar('\n');
    if (!r->has_target) return;
    printf("%-30sSD %.5f, %.1f %% of the dimensions below 0.001, "
           "entropy rank %.2f, participation %.2f\n",
           "target latents", r->health.mean_std, 100 * r->health.low_std_fraction,
           r->health.entropy_rank, r->health.participation);
}

static void print_part(const char *title, double loss, double plain) {
    if (isnan(loss)) printf("%-30s%10s\n", title, "-");
    else printf("%-30s%+10.4f m %+8.1f %%\n", title, loss, 100 * loss / plain);
}

static void print_exchange(const eval_result *r) {
    const bj_exchange_values *x = &r->exchange;
    const bj_encoder_values e = bj_evaluator_encoder(r->evaluator);
    char count[CLI_COUNT_SIZE];
    puts("\nUse of the inputs");
    printf("%-30s%10.1f effective tokens, context norm %.2f\n", "attention", e.attention_tokens,
           e.context_norm);
    if (!(x->scenes > 0)) return;
    printf("increase of the trajectory Energy Score (%.4f m) "
           "if an input is exchanged between %s scenes\n",
           x->plain, cli_count(count, (size_t)x->scenes));
    print_part("map", x->map, x->plain);
    print_part("neighbors", x->neighbors, x->plain);
    print_part("focal track", x->focal, x->plain);
}

static void print_calibration(const bj_evaluator *evaluator) {
    bj_calibration_bin bins[BJ_CALIBRATION_BINS];
    bj_evaluator_calibration(bins, evaluator);
    puts("\nCalibration of the most likely maneuver");
    printf("%-18s%8s%18s%12s\n", "probability", "scenes", "mean probability", "frequency");
    for (int i = 0; i < BJ_CALIBRATION_BINS; i++) {
        if (!(bins[i].count > 0)) continue;
        char range[32];
        snprintf(range, sizeof range, "%.1f to %.1f", i / 10.0, (i + 1) / 10.0);
        printf("%-18s%8.0f", range, bins[i].count);
        print_number(bins[i].confidence, 18, 4);
        print_number(bins[i].hits, 12, 4);
        putchar('\n');
    }
}

static void print_groups(const bj_evaluator *evaluator) {
    static const char *const columns[] = {"traj_es",  "latent_es", "exp_ade", "exp_fde",
                                          "top1_ade", "top1_mr",   "brier",   "dedup_support"};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    const char *by = "";
    for (int i = 1; i < bj_evaluator_groups(evaluator); i++) {
        const bj_evaluation_group g = bj_evaluator_group_at(evaluator, i);
        if (strcmp(by, g.by)) {
            printf("\n%-14s%8s", g.by, "scenes");
            for (int c = 0; c < COLUMNS; c++)
                printf("%*s", c == COLUMNS - 1 ? 14 : 11,
                       bj_metric_at(bj_metric_find(columns[c])).title);
            printf("\n%-14s%8s", strcmp(g.by, "speed") ? "" : "m/s", "");
            for (int c = 0; c < COLUMNS; c++)
                printf("%*s", c == COLUMNS - 1 ? 14 : 11,
                       bj_metric_at(bj_metric_find(columns[c])).unit);
            putchar('\n');
        }
        by = g.by;
        printf("%-14s%8.0f", g.key, g.values.scenes);
        for (int c = 0; c < COLUMNS; c++) {
            const int metric = bj_metric_find(columns[c]);
            print_number(bj_metric_value(&g.values, metric), c == COLUMNS - 1 ? 14 : 11,
                         bj_metric_at(metric).digits);
        }
        putchar('\n');
    }
}

void eval_print_text(const eval_result *r) {
    const bj_metric_values values = bj_evaluator_values(r->evaluator);
    char count[CLI_COUNT_SIZE];
    printf("%s: %s, K = %d", r->model, r->arch.kind == BJ_MODEL_BRANCH ? "branches" : "one latent",
           r->arch.atoms);
    if (r->arm) printf(", arm %s", r->arm);
    if (r->seed) printf(", seed %s", r->seed);
    printf("\n%s: %s scenes of part '%s'", r->data, cli_count(count, (size_t)r->scenes), r->part);
    if (r->over_limit)
        printf(", %s more were not evaluated", cli_count(count, (size_t)r->over_limit));
    if (r->no_future) printf("; %s without a future", cli_count(count, (size_t)r->no_future));
    puts("\n");
    print_values(&values, r->arch.atoms);
    print_leaderboard(&values, r->arch.atoms);
    print_usage(r);
    print_exchange(r);
    print_calibration(r->evaluator);
    print_groups(r->evaluator);
    printf("\nlatency %.3f ms (median over %d single-scene predictions)\n", 1e3 * r->latency,
           r->latency_scenes);
    printf("throughput %.0f scenes/s, including the metrics, with %d thread%s (%s)\n",
           (double)r->scenes / r->seconds, r->threads, r->threads == 1 ? "" : "s", r->isa);
}

/* ---------------------------------------------------------------------------------------- JSON */

static void json_text(const char *name, const char *value) {
    printf(",\"%s\":", name);
    cli_json_text(stdout, value);
}

static void json_number(const char *before, const char *name, double value) {
    printf("%s\"%s\":", before, name);
    cli_json_double(stdout, value);
}

/* Prints every field of bj_metric_values except scenes, in directory order. */
static void json_metrics(const bj_metric_values *v) {
    const char *comma = "";
    printf("{");
    for (int i = 0; i < bj_metric_count(); i++) {
        const bj_metric_info m = bj_metric_at(i);
        if (!strcmp(m.name, "decoder_ade")) break; /* what follows is measured elsewhere */
        json_number(comma, m.name, bj_metric_value(v, i));
        comma = ",";
    }
    printf("}");
}

static void json_lists(const eval_result *r) {
    double shares[BJ_MAX_ATOMS];
    bj_calibration_bin bins[BJ_CALIBRATION_BINS];
    bj_evaluator_usage(shares, r->evaluator);
    bj_evaluator_calibration(bins, r->evaluator);
    printf(",\"usage\":[");
    for (int k = 0; k < r->arch.atoms; k++) {
        if (k) putchar(',');
        cli_json_double(stdout, shares[k]);
    }
    printf("],\"calibration\":[");
    for (int i = 0; i < BJ_CALIBRATION_BINS; i++) {
        printf("%s{", i ? "," : "");
        json_number("", "from", i / 10.0);
        json_number(",", "to", (i + 1) / 10.0);
        json_number(",", "scenes", bins[i].count);
        json_number(",", "confidence", bins[i].confidence);
        json_number(",", "hits", bins[i].hits);
        putchar('}');
    }
    printf("],\"groups\":[");
    for (int i = 1; i < bj_evaluator_groups(r->evaluator); i++) {
        const bj_evaluation_group g = bj_evaluator_group_at(r->evaluator, i);
        printf("%s{\"by\":\"%s\",\"key\":", i > 1 ? "," : "", g.by);
        cli_json_text(stdout, g.key);
        printf(",\"scenes\":%.0f,\"metrics\":", g.values.scenes);
        json_metrics(&g.values);
        putchar('}');
    }
    putchar(']');
}

static void json_exchange(const eval_result *r) {
    const bj_exchange_values *x = &r->exchange;
    const bj_encoder_values e = bj_evaluator_encoder(r->evaluator);
    const struct {
        const char *name, *relative;
        double loss;
    } parts[] = {{"map", "map_relative", x->map},
                 {"neighbors", "neighbors_relative", x->neighbors},
                 {"focal", "focal_relative", x->focal}};
    json_number(",\"encoder\":{", "attention_tokens", e.attention_tokens);
    json_number(",", "context_norm", e.context_norm);
    printf("},\"exchange\":");
    if (!(x->scenes > 0)) {
        printf("null");
        return;
    }
    printf("{\"scenes\":%.0f", x->scenes);
    json_number(",", "plain", x->plain);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        json_number(",", parts[i].name, parts[i].loss);
        json_number(",", parts[i].relative, parts[i].loss / x->plain);
    }
    putchar('}');
}

void eval_print_json(const eval_result *r) {
    const bj_metric_values values = bj_evaluator_values(r->evaluator);
    printf("{\"schema\":\"branchjepa.eval/1\",\"type\":\"eval\"");
    json_text("model", r->model);
    json_text("model_sha256", r->digest);
    json_text("arm", r->arm);
    json_text("seed", r->seed);
    printf(",\"kind\":\"%s\",\"atoms\":%d,\"target\":%s",
           r->arch.kind == BJ_MODEL_BRANCH ? "branch" : "outputonly", r->arch.atoms,
           r->has_target ? "true" : "false");
    json_text("data", r->data);
    json_text("data_digest", r->data_digest);
    json_text("part", r->part);
    printf(",\"scenes\":%lld,\"without_future\":%lld,\"over_limit\":%lld,\"metrics\":",
           (long long)r->scenes, (long long)r->no_future, (long long)r->over_limit);
    json_metrics(&values);
    json_number(",\"health\":{", "mean_std", r->health.mean_std);
    json_number(",", "low_std_fraction", r->health.low_std_fraction);
    json_number(",", "entropy_rank", r->health.entropy_rank);
    json_number(",", "participation", r->health.participation);
    putchar('}');
    json_exchange(r);
    json_lists(r);
    json_number(",", "seconds", r->seconds);
    json_number(",", "scenes_per_s", (double)r->scenes / r->seconds);
    json_number(",", "latency_ms", 1e3 * r->latency);
    printf(",\"latency_scenes\":%d,\"threads\":%d", r->latency_scenes, r->threads);
    json_text("isa", r->isa);
    json_text("precision", r->precision);
    puts("}");
}
