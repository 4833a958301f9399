/* test_develop.c - tests which epoch's checkpoint is kept, and when a run ends.
 *
 * The rules of src/run/develop.c are applied to invented rows. The rule about models that are blind
 * to the map is tested, too. tests/eval/test_exchange.c applies it to trained models.
 */
#include <math.h>

#include "run/run.h"
#include "support/test.h"

enum { ROWS = 8 };

/* Returns rows for epochs 0, 1, ... with these criteria. The other criterion would prefer another
 * epoch. */
static void fill(bj_epoch *rows, const bj_settings *s, const double *values, int count) {
    for (int i = 0; i < count; i++) {
        rows[i] = (bj_epoch){.epoch = i, .eligible = 1};
        rows[i].dev.traj_es = rows[i].decoder_ade = -values[i];
        if (s->objective.kind == BJ_ANCHOR_A) rows[i].decoder_ade = values[i];
        else rows[i].dev.traj_es = values[i];
    }
}

static void test_choose(bj_objective_kind kind) {
    const bj_settings s = {.objective.kind = kind, .epochs = 30};
    bj_epoch rows[ROWS];
    fill(rows, &s, (double[]){1, 5, 3, 4, 3, 2, 2.5, 2}, ROWS);
    CHECK(bj_run_criterion(&s, &rows[2]) == 3);
    /* Tests that epoch 0 is never chosen. */
    CHECK(bj_run_choose(&s, rows, 0) == -1);
    CHECK(bj_run_choose(&s, rows, 1) == -1);
    CHECK(bj_run_choose(&s, rows, 2) == 1);
    CHECK(bj_run_choose(&s, rows, 3) == 2);
    /* Ties go to the earlier one. */
    CHECK(bj_run_choose(&s, rows, 5) == 2);
    CHECK(bj_run_choose(&s, rows, ROWS) == 5);
    /* Tests that rows that are not eligible are ignored. */
    rows[5].eligible = 0;
    CHECK(bj_run_choose(&s, rows, ROWS) == 7);
    rows[7].eligible = rows[6].eligible = rows[2].eligible = 0;
    CHECK(bj_run_choose(&s, rows, ROWS) == 4);
    for (int i = 0; i < ROWS; i++) rows[i].eligible = 0;
    CHECK(bj_run_choose(&s, rows, ROWS) == -1);
    rows[0].eligible = 1;
    CHECK(bj_run_choose(&s, rows, ROWS) == -1);
    /* Tests that NaN is not the minimum. */
    fill(rows, &s, (double[]){1, NAN, 3, 4, NAN, 2}, 6);
    CHECK(bj_run_choose(&s, rows, 2) == -1);
    CHECK(bj_run_choose(&s, rows, 5) == 2);
    CHECK(bj_run_choose(&s, rows, 6) == 5);
}

static void test_over(void) {
    bj_settings s = {.objective.kind = BJ_FULLSET, .epochs = 7};
    const bj_plan plan = bj_plan_of(&s);
    bj_epoch rows[ROWS];
    fill(rows, &s, (double[]){1, 5, 3, 4, 3, 3.5, 2, 9}, ROWS);
    CHECK(!bj_run_over(&s, &plan, rows, 0));
    for (int i = 1; i < ROWS; i++) CHECK(!bj_run_over(&s, &plan, rows, i)); /* all epochs: no patience */
    CHECK(bj_run_over(&s, &plan, rows, ROWS));
    s.patience = 2; /* the best epoch is 2; epochs 3 and 4 are not better, because a tie does not
                       count */
    CHECK(!bj_run_over(&s, &plan, rows, 4));
    CHECK(bj_run_over(&s, &plan, rows, 5));
    s.patience = 3;
    CHECK(!bj_run_over(&s, &plan, rows, 5));
    CHECK(bj_run_over(&s, &plan, rows, 6));
    s.patience = 4;
    CHECK(!bj_run_over(&s, &plan, rows, 7)); /* epoch 6 is better than epoch 2, just before patience
                                                runs out */
    s.patience = 1;
    CHECK(!bj_run_over(&s, &plan, rows, 1) && !bj_run_over(&s, &plan, rows, 2) && !bj_run_over(&s, &plan, rows, 3));
    CHECK(bj_run_over(&s, &plan, rows, 4));
    /* Nothing to be patient about. */
    for (int i = 0; i < ROWS; i++) rows[i].eligible = 0;
    CHECK(!bj_run_over(&s, &plan, rows, ROWS - 1));
    CHECK(bj_run_over(&s, &plan, rows, ROWS));
}

/* Tests each gate alone, with a value at its limit, a value beyond it, and NaN. */
static void test_gates(void) {
    const bj_settings s = {
        .gate_ade = 2, .gate_fde = 4, .gate_std = .005, .gate_low_std = .9, .gate_rank = 8};
    const bj_epoch good = {.decoder_ade = 2,
                           .decoder_fde = 4,
                           .health = {.mean_std = .005, .low_std_fraction = .9, .entropy_rank = 8}};
    CHECK(bj_run_passes(&s, &good));
    for (int gate = 0; gate < 5; gate++) {
        bj_epoch row = good;
        double *value[] = {&row.decoder_ade, &row.decoder_fde, &row.health.mean_std,
                           &row.health.low_std_fraction, &row.health.entropy_rank};
        const int least = gate == 2 || gate == 4;
        const double limit = *value[gate];
        *value[gate] = least ? 2 * limit : limit / 2;
        CHECK_MSG(bj_run_passes(&s, &row), "gate %d", gate);
        *value[gate] = nextafter(limit, least ? 0 : 100);
        CHECK_MSG(!bj_run_passes(&s, &row), "gate %d", gate);
        *value[gate] = NAN;
        CHECK_MSG(!bj_run_passes(&s, &row), "gate %d", gate);
    }
}

/* Tests the number of development scenes on which parts are exchanged. */
static void test_exchange_scenes(void) {
    static const int64_t cases[][3] = {{110, 10, 10},       {2288, 112, 112}, {2288, 600, 128},
                                       {4096, 600, 128},    {8000, 600, 250}, {16384, 513, 512},
                                       {190126, 9782, 512}, {190126, 40, 40}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MSG(bj_exchange_scenes(cases[i][0], cases[i][1]) == cases[i][2], "case %zu", i);
}

/* Tests from which epoch the rule applies, and its two limits. A model with an unknown value is not
 * blind. */
static void test_blind(void) {
    const bj_settings s = {.epochs = 30};
    const bj_exchange_values blind = {
        .scenes = 512, .plain = 4, .map = .079, .neighbors = 3, .focal = .8};
    bj_epoch row = {.epoch = 16, .step = 100, .exchange = blind};
    CHECK(bj_epoch_blind(&s, &row));
    row.exchange.map = -1;
    CHECK(bj_epoch_blind(&s, &row));
    row.exchange.map = .0801;
    CHECK(!bj_epoch_blind(&s, &row));
    row.exchange.map = NAN;
    CHECK(!bj_epoch_blind(&s, &row));
    row.exchange = blind;
    row.exchange.focal = .799; /* not trained yet */
    CHECK(!bj_epoch_blind(&s, &row));
    row.exchange.focal = NAN;
    CHECK(!bj_epoch_blind(&s, &row));
    row.exchange = blind;
    row.exchange.plain = NAN;
    CHECK(!bj_epoch_blind(&s, &row));
    row.exchange = blind;
    row.epoch = 15;
    CHECK(!bj_epoch_blind(&s, &row));
    row.step = 1000;
    CHECK(bj_epoch_blind(&s, &row));
    row.step = 999;
    CHECK(!bj_epoch_blind(&s, &row));
    row.epoch = 3;
    row.step = 100000;
    CHECK(!bj_epoch_blind(&s, &row));
    row.epoch = 4;
    CHECK(bj_epoch_blind(&s, &row));
}

int main(void) {
    test_choose(BJ_FULLSET);
    test_choose(BJ_ANCHOR_B);
    test_choose(BJ_ANCHOR_A);
    test_over();
    test_gates();
    test_exchange_scenes();
    test_blind();
    return test_report("develop");
}
