/* score_print.c - prints a score as text, JSON and CSV, all from one table of numbers. */
#include "score.h"

#include <stddef.h>
#include <string.h>

#include "grid.h"
#include "json_out.h"

typedef struct number {
    const char *name;
    size_t offset;
} number;

#define OWN(name)                                                                                  \
    { #name, offsetof(bj_score_values, name) }
#define OF_SET(name)                                                                               \
    { #name, offsetof(bj_score_values, distribution.name) }
static const number numbers[] = {OWN(modes),           OWN(min_ade_1),
                                 OWN(min_fde_1),       OWN(mr_1),
                                 OWN(brier_min_ade_1), OWN(brier_min_fde_1),
                                 OWN(min_ade_6),       OWN(min_ade_at_min_fde_6),
                                 OWN(min_fde_6),       OWN(mr_6),
                                 OWN(brier_min_ade_6), OWN(brier_min_fde_6),
                                 OF_SET(traj_es),      OF_SET(traj_obs),
                                 OF_SET(traj_disp),    OF_SET(end_es),
                                 OF_SET(exp_ade),      OF_SET(exp_fde),
                                 OF_SET(brier),        OF_SET(ece),
                                 OF_SET(exp_entropy),  OF_SET(dedup_support)};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static double value(const bj_score_values *v, size_t offset) {
    double out;
    memcpy(&out, (const char *)v + offset, sizeof out);
    return out;
}

/* ----------------------------------------------------------------------------------------- text */

static void print_violations(const bj_score *score, const bj_score_counts *c) {
    printf("check: %s", c->violations_total ? "" : "passed\n");
    if (!c->violations_total) return;
    printf("%lld violation%s (", (long long)c->violations_total,
           c->violations_total > 1 ? "s" : "");
    const char *comma = "";
    for (int k = 0; k < BJ_VIOLATION_KINDS; k++)
        if (c->violations[k]) {
            printf("%s%s %lld", comma, bj_violation_name((bj_violation_kind)k),
                   (long long)c->violations[k]);
            comma = ", ";
        }
    puts(")");
    for (int i = 0; i < bj_score_listed(score); i++) {
        const bj_violation *v = bj_score_violation(score, i);
        if (v->row >= 0) printf("  row %lld", (long long)v->row);
        else printf("  without a row");
        if (v->scenario_id) printf(", scenario %s", v->scenario_id);
        printf(": %s\n", v->message);
    }
    const int64_t more = c->violations_total - bj_score_listed(score);
    if (more > 0) printf("  and %lld more\n", (long long)more);
}

static void print_counts(const bj_score_counts *c) {
    printf("ground truth: %lld scenarios, %lld scored", (long long)c->truths, (long long)c->scored);
    const struct {
        int64_t count;
        const char *what;
    } others[] = {{c->missing, "missing"},
                  {c->malformed, "malformed"},
                  {c->no_future, "without a future"},
                  {c->unreadable, "unreadable"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count) printf(", %lld %s", (long long)others[i].count, others[i].what);
    if (c->gaps) printf("; %lld with interpolated gaps in the future", (long long)c->gaps);
    putchar('\n');
}

static void print_pair(const char *title, double one, double six) {
    printf("%-22s%10.4f%10.4f\n", title, one, six);
}

static void print_all(const bj_score_values *v) {
    const bj_metric_values *d = &v->distribution;
    printf("\n%-22s%10s%10s\n", "", "K = 1", "K = 6");
    print_pair("minADE (m)", v->min_ade_1, v->min_ade_6);
    print_pair("minADE at minFDE (m)", v->min_ade_1, v->min_ade_at_min_fde_6);
    print_pair("minFDE (m)", v->min_fde_1, v->min_fde_6);
    print_pair("miss rate (2 m)", v->mr_1, v->mr_6);
    print_pair("brier-minADE (m)", v->brier_min_ade_1, v->brier_min_ade_6);
    print_pair("brier-minFDE (m)", v->brier_min_fde_1, v->brier_min_fde_6);
    printf("\nall modes (%.2f per scene)\n", v->modes);
    printf("trajectory Energy Score (m)  %.4f = observation %.4f - dispersion %.4f\n", d->traj_es,
           d->traj_obs, d->traj_disp);
    printf("endpoint Energy Score (m)    %.4f\n", d->end_es);
    printf("expected ADE, FDE (m)        %.4f  %.4f\n", d->exp_ade, d->exp_fde);
    printf("maneuver Brier score, ECE    %.4f  %.4f\n", d->brier, d->ece);
    printf("effective number of modes    %.4f by weight, %.4f by endpoint\n", d->exp_entropy,
           d->dedup_support);
}

static void print_groups(const bj_score *score) {
    const char *by = "";
    for (int i = 1; i < bj_score_groups(score); i++) {
        const bj_score_group g = bj_score_group_at(score, i);
        if (strcmp(by, g.by)) {
            printf("\n%-18s%8s%10s%10s%8s%14s%10s%10s\n", g.by, "scenes", "minADE6", "minFDE6",
                   "MR6", "brier-minFDE6", "traj. ES", "exp. FDE");
            printf("%-18s%8s%10s%10s%8s%14s%10s%10s\n", strcmp(g.by, "speed") ? "" : "m/s", "", "m",
                   "m", "", "m", "m", "m");
        }
        by = g.by;
        printf("%-18s%8.0f%10.4f%10.4f%8.4f%14.4f%10.4f%10.4f\n", g.key, g.values.scenes,
               g.values.min_ade_6, g.values.min_fde_6, g.values.mr_6, g.values.brier_min_fde_6,
               g.values.distribution.traj_es, g.values.distribution.exp_fde);
    }
}

void score_print_text(const bj_score *score, const score_options *o) {
    const bj_score_counts c = bj_score_count(score);
    printf("%s: %lld rows, %lld scenarios\n", o->file, (long long)c.rows, (long long)c.scenarios);
    print_violations(score, &c);
    if (!o->truth) return;
    print_counts(&c);
    if (c.violations_total && o->strict) {
        puts("no scores, because of --strict");
    } else if (bj_score_groups(score)) {
        const bj_score_group all = bj_score_group_at(score, 0);
        print_all(&all.values);
        print_groups(score);
    }
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_count(const char *name, int64_t count) {
    printf(",\"%s\":%lld", name, (long long)count);
}

static void json_violations(const bj_score *score, const bj_score_counts *c) {
    printf(",\"violations_total\":%lld,\"violations_by_kind\":{", (long long)c->violations_total);
    for (int k = 0; k < BJ_VIOLATION_KINDS; k++)
        printf("%s\"%s\":%lld", k ? "," : "", bj_violation_name((bj_violation_kind)k),
               (long long)c->violations[k]);
    printf("},\"violations\":[");
    for (int i = 0; i < bj_score_listed(score); i++) {
        const bj_violation *v = bj_score_violation(score, i);
        printf("%s{\"kind\":\"%s\",\"row\":", i ? "," : "", bj_violation_name(v->kind));
        if (v->row >= 0) printf("%lld", (long long)v->row);
        else printf("null");
        printf(",\"scenario_id\":");
        cli_json_text(stdout, v->scenario_id);
        printf(",\"message\":");
        cli_json_text(stdout, v->message);
        putchar('}');
    }
    putchar(']');
}

static void json_groups(const bj_score *score) {
    printf(",\"groups\":[");
    for (int i = 0; i < bj_score_groups(score); i++) {
        const bj_score_group g = bj_score_group_at(score, i);
        printf("%s{\"by\":\"%s\",\"key\":", i ? "," : "", g.by);
        cli_json_text(stdout, g.key);
        printf(",\"scenes\":%.0f", g.values.scenes);
        for (int n = 0; n < NUMBERS; n++) {
            printf(",\"%s\":", numbers[n].name);
            cli_json_double(stdout, value(&g.values, numbers[n].offset));
        }
        putchar('}');
    }
    putchar(']');
}

void score_print_json(const bj_score *score, const score_options *o) {
    const bj_score_counts c = bj_score_count(score);
    printf("{\"schema\":1,\"type\":\"score\",\"file\":");
    cli_json_text(stdout, o->file);
    printf(",\"truth\":");
    cli_json_text(stdout, o->truth);
    printf(",\"passed\":%s", c.violations_total ? "false" : "true");
    json_count("rows", c.rows);
    json_count("scenarios", c.scenarios);
    if (o->truth) {
        json_count("truths", c.truths);
        json_count("scored", c.scored);
        json_count("missing", c.missing);
        json_count("malformed", c.malformed);
        json_count("no_future", c.no_future);
        json_count("unreadable", c.unreadable);
        json_count("unknown", c.unknown);
        json_count("gaps", c.gaps);
    }
    json_violations(score, &c);
    if (o->truth && !(c.violations_total && o->strict)) json_groups(score);
    puts("}");
}

/* ------------------------------------------------------------------------------------------ CSV */

void score_print_rows(FILE *to, const bj_score *score) {
    fputs("scenario_id,track_id,maneuver,type,city,speed,gaps", to);
    for (int n = 0; n < NUMBERS; n++) fprintf(to, ",%s", numbers[n].name);
    putc('\n', to);
    for (int64_t i = 0; i < bj_score_scenes(score); i++) {
        const bj_score_scene *s = bj_score_scene_at(score, i);
        const char *const texts[] = {s->scenario_id, s->track_id, s->maneuver,
                                     s->type,        s->city,     s->speed};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            cli_csv_text(to, texts[t]);
            putc(',', to);
        }
        fprintf(to, "%d", s->gaps);
        for (int n = 0; n < NUMBERS; n++) {
            putc(',', to);
            cli_json_double(to, value(&s->values, numbers[n].offset));
        }
        putc('\n', to);
    }
}
