/* test_history.c - tests metrics.jsonl and metrics.csv: their text, exact numbers, rejected files.
 *
 *   test_history rewrite FROM TO    reads the history of a folder and writes it into another, for
 *                                   peer_events.py
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <float.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "run/history.h"
#include "run/history_case.h"
#include "support/test.h"

enum { TEXT = 1 << 16 };

static char folder[] = "/tmp/test_history.XXXXXX";
static char jsonl[64], csv[64];
static bj_error err;

static void put_text(const char *text) {
    FILE *file = fopen(jsonl, "wb"); /* not synced: there are many */
    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static void get_text(char text[TEXT], const char *path) {
    char *content = NULL;
    size_t size;
    text[0] = '\0';
    CHECK_OK(bj_file_read(&content, &size, path, TEXT - 1, &err), err);
    if (content) memcpy(text, content, size + 1);
    bj_free(content);
}

/* Reads `text` as metrics.jsonl; the rows are freed. */
static bj_status read_status(const char *text, int *count) {
    bj_epoch *rows = NULL;
    put_text(text);
    err.message[0] = '\0';
    const bj_status status = bj_history_read(&rows, count, folder, &err);
    CHECK_MSG(status == BJ_OK || (!rows && !*count), "rows of a refused file");
    bj_free(rows);
    return status;
}

/* Returns `text` with the first `from` after `after` replaced, or NULL if it does not occur. */
static const char *edited(const char *text, const char *after, const char *from, const char *to) {
    static char result[TEXT];
    const char *const begin = strstr(text, after);
    const char *const at = begin ? strstr(begin, from) : NULL;
    if (!at) return NULL;
    snprintf(result, sizeof result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return result;
}

/* Tests that the edited text is rejected with a message that contains the file, the line and
 * `says`. */
static void refuse(const char *text, const char *after, const char *from, const char *to,
                   bj_status code, int line, const char *says) {
    char where[96];
    int count;
    const char *const bad = edited(text, after, from, to);
    CHECK_MSG(bad != NULL, "no '%s' behind '%s'", from, after);
    if (!bad) return;
    const bj_status status = read_status(bad, &count);
    snprintf(where, sizeof where, "%s:%d: ", jsonl, line);
    CHECK_MSG(status == code, "'%s' for '%s': status %d, %s", to, from, (int)status, err.message);
    CHECK_CONTAINS(err.message, where);
    CHECK_CONTAINS(err.message, says);
}

static int same_bits(const bj_epoch *a, const bj_epoch *b) {
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const bj_epoch_field *field = &bj_epoch_fields[f];
        const size_t at = field->offset, size = field->type == BJ_EPOCH_STEP   ? sizeof(int64_t)
                                                : field->type == BJ_EPOCH_REAL ? sizeof(double)
                                                                               : sizeof(int);
        if (field->type == BJ_EPOCH_REAL && isnan(bj_epoch_real(a, field)) &&
            isnan(bj_epoch_real(b, field)))
            continue;
        if (memcmp((const char *)a + at, (const char *)b + at, size)) return 0;
    }
    return 1;
}

/* ---------------------------------------------------------------------------------------- table */

/* Tests that every byte of a bj_epoch belongs to exactly one field, except for the gap after its
 * first int. This ensures that new members are added to the table. */
static void test_table(void) {
    char owner[sizeof(bj_epoch)] = {0};
    size_t covered = 0;
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const bj_epoch_field *a = &bj_epoch_fields[f];
        const size_t size = a->type == BJ_EPOCH_STEP   ? sizeof(int64_t)
                            : a->type == BJ_EPOCH_REAL ? sizeof(double)
                                                       : sizeof(int);
        for (size_t i = 0; i < size; i++) CHECK_MSG(!owner[a->offset + i]++, "%s", a->path);
        covered += size;
        CHECK_MSG(!a->tag || a->type == BJ_EPOCH_REAL, "%s", a->path);
        for (int g = 0; g < f; g++) {
            CHECK(strcmp(a->path, bj_epoch_fields[g].path));
            CHECK(!a->tag || !bj_epoch_fields[g].tag || strcmp(a->tag, bj_epoch_fields[g].tag));
        }
    }
    CHECK_MSG(sizeof(bj_epoch) - covered == 4, "%zu bytes without a field",
              sizeof(bj_epoch) - covered);
}

/* ---------------------------------------------------------------------------------------- files */

/* Tests the groups of scene models: files without the maze group, files in which each group is left
 * out in turn, and files of earlier versions. `line` is a line without any of these groups. */
static void check_scene_groups(const bj_epoch *full, const char *line) {
    static const char encoder[] =
        ",\"encoder\":{\"attention_tokens\":164.25,\"context_norm\":165.25}";
    static const char exchange[] =
        ",\"exchange\":{\"scenes\":166.25,\"plain\":167.25,\"map\":168.25,"
        "\"neighbors\":169.25,\"focal\":170.25}}\n";
    static char text[TEXT];
    bj_epoch row = *full, *back = NULL;
    int count;
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, jsonl);
    CHECK(!strncmp(text, line, strlen(line) - 2));
    CHECK(!strncmp(text + strlen(line) - 2, encoder, sizeof encoder - 1));
    CHECK(!strcmp(text + strlen(line) - 2 + sizeof encoder - 1, exchange));
    get_text(text, csv);
    CHECK_CONTAINS(text, ",decoder.fde,encoder.attention_tokens,encoder.context_norm,"
                         "exchange.scenes,exchange.plain,exchange.map,exchange.neighbors,"
                         "exchange.focal\n");
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && same_bits(back, &row) && back[0].exchange.focal == 170.25);
    bj_free(back);
    back = NULL;
    put_text(line);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && isnan(back[0].exchange.map) && isnan(back[0].encoder.context_norm));
    bj_free(back);
    back = NULL;
    row.encoder = (bj_encoder_values){NAN, NAN};
    row.exchange.map = NAN;
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, jsonl);
    CHECK_CONTAINS(text, "\"plain\":167.25,\"map\":null,");
    CHECK(!strstr(text, "encoder") && !strstr(text, "maze"));
}

/* Tests the format on which other programs rely: names, order, text of numbers. */
static void test_text(void) {
    static const char line[] =
        "{\"schema\":\"branchjepa.epoch/1\",\"type\":\"epoch\",\"step\":48,\"epoch\":1,"
        "\"wall_s\":102.25,\"lr\":0.0003,\"grad_norm\":104.25,\"scenes_per_s\":1e300,"
        "\"best\":true,\"eligible\":false,"
        "\"train\":{\"loss\":108.25,\"latent\":109.25,\"decoded\":110.25,\"rec\":111.25,"
        "\"router\":112.25,\"usage\":113.25,\"variance\":114.25,\"rank\":115.25,"
        "\"participation\":116.25},"
        "\"dev\":{\"scenes\":640.0,\"traj_es\":null,\"traj_obs\":122.25,\"traj_disp\":123.25,"
        "\"end_es\":124.25,\"latent_es\":125.25,\"exp_ade\":126.25,\"exp_fde\":127.25,"
        "\"top1_ade\":128.25,\"top1_fde\":129.25,\"top1_mr\":130.25,\"min_ade\":131.25,"
        "\"min_fde\":132.25,\"min_mr\":133.25,\"brier\":134.25,\"ece\":135.25,"
        "\"exp_entropy\":136.25,\"active_heads\":137.25,\"neff_collision\":138.25,"
        "\"dedup_support\":139.25,\"brier_min_fde_1\":140.25,\"min_ade_6\":141.25,"
        "\"min_fde_6\":142.25,\"mr_6\":143.25,\"brier_min_fde_6\":144.25},"
        "\"health\":{\"mean_std\":145.25,\"low_std_fraction\":146.25,\"entropy_rank\":147.25,"
        "\"participation\":148.25},"
        "\"usage\":{\"least\":149.25,\"most\":150.25},"
        "\"decoder\":{\"ade\":151.25,\"fde\":-0.0}}\n";
    static const char table[] =
        "step,epoch,wall_s,lr,grad_norm,scenes_per_s,best,eligible,train.loss,train.latent,"
        "train.decoded,train.rec,train.router,train.usage,train.variance,train.rank,"
        "train.participation,dev.scenes,dev.traj_es,dev.traj_obs,dev.traj_disp,dev.end_es,"
        "dev.latent_es,dev.exp_ade,dev.exp_fde,dev.top1_ade,dev.top1_fde,dev.top1_mr,dev.min_ade,"
        "dev.min_fde,dev.min_mr,dev.brier,dev.ece,dev.exp_entropy,dev.active_heads,"
        "dev.neff_collision,dev.dedup_support,dev.brier_min_fde_1,dev.min_ade_6,dev.min_fde_6,"
        "dev.mr_6,dev.brier_min_fde_6,health.mean_std,health.low_std_fraction,"
        "health.entropy_rank,health.participation,usage.least,usage.most,decoder.ade,decoder.fde\n"
        "48,1,102.25,0.0003,104.25,1e300,1,0,108.25,109.25,110.25,111.25,112.25,113.25,114.25,"
        "115.25,116.25,640.0,,122.25,123.25,124.25,125.25,126.25,127.25,128.25,129.25,130.25,"
        "131.25,132.25,133.25,134.25,135.25,136.25,137.25,138.25,139.25,140.25,141.25,142.25,"
        "143.25,144.25,145.25,146.25,147.25,"
        "148.25,149.25,150.25,151.25,-0.0\n";
    static char text[TEXT];
    bj_epoch row = history_row(1), *back = NULL;
    int count;
    row.lr = 3e-4;
    row.scenes_per_s = 1e300;
    row.dev.scenes = 640;
    row.dev.traj_es = NAN;
    row.decoder_fde = -0.0;
    const bj_loss train = row.train;
    row.train.sigreg = row.train.vicreg_variance = row.train.vicreg_covariance = NAN;
    /* of a maze: one group more */
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, jsonl);
    CHECK(!strncmp(text, line, sizeof line - 3)); /* up to the last brace */
    CHECK_CONTAINS(text, ",\"maze\":{\"plan_all\":153.25,\"verified_route\":154.25,");
    CHECK_CONTAINS(text, ",\"separated\":160.25,\"closest\":161.25,\"cov_three\":162.25,"
                         "\"heads_three\":163.25},");
    /* files of earlier versions do not have these two members; all other members are required */
    const char *const older =
        edited(text, "maze", ",\"cov_three\":162.25,\"heads_three\":163.25", "");
    put_text(older ? older : "");
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && isnan(back[0].maze.cov_three) && back[0].maze.closest == 161.25);
    bj_free(back);
    back = NULL;
    const char *const less = edited(text, "maze", ",\"closest\":161.25", "");
    CHECK(read_status(less ? less : "", &count) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "member 'maze.closest' is missing");
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, csv);
    CHECK_CONTAINS(text, ",decoder.fde,maze.plan_all,");
    CHECK_CONTAINS(text, "151.25,-0.0,153.25,");
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && !memcmp(&back[0].maze, &row.maze, sizeof row.maze));
    bj_free(back);
    back = NULL;
    /* of any other run: no trace of it */
    row.maze = (bj_maze_values){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    check_scene_groups(&row, line);
    row.encoder = (bj_encoder_values){NAN, NAN};
    row.exchange = (bj_exchange_values){NAN, NAN, NAN, NAN, NAN};
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, jsonl);
    CHECK_MSG(!strcmp(text, line), "%s", text);
    get_text(text, csv);
    CHECK_MSG(!strcmp(text, table), "%s", text);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && same_bits(back, &row) && signbit(back->decoder_fde));
    CHECK(isnan(back->train.sigreg) && isnan(back->train.vicreg_covariance));
    CHECK(back->dev.mr_6 == 143.25);
    bj_free(back);
    back = NULL;
    /* Tests that files without the leaderboard metrics, which version 0.1.0 added, can be read. */
    const char *const without = edited(line, "dedup_support", ",\"mr_6\":143.25", "");
    put_text(without ? without : "");
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && isnan(back->dev.mr_6) && back->dev.min_fde_6 == 142.25);
    bj_free(back);
    back = NULL;
    put_text(line);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(back->dev.traj_obs == 122.25 && back->health.participation == 148.25 &&
          back->train.total == 108.25 && back->usage_most == 150.25 && back->wall_s == 102.25);
    bj_free(back);
    back = NULL;
    /* with regularizers, `train` has three more members, regardless of their values */
    row.train = train;
    row.train.vicreg_variance = NAN;
    CHECK_OK(bj_history_write(folder, &row, 1, &err), err);
    get_text(text, jsonl);
    CHECK_CONTAINS(text, ",\"participation\":116.25,\"sigreg\":117.25,\"vicreg_variance\":null,"
                         "\"vicreg_covariance\":119.25},\"dev\":{");
    CHECK(!strstr(text, "maze"));
    get_text(text, csv);
    CHECK_CONTAINS(text, ",train.participation,train.sigreg,train.vicreg_variance,"
                         "train.vicreg_covariance,dev.scenes,");
    CHECK_CONTAINS(text, ",116.25,117.25,,119.25,640.0,");
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && same_bits(back, &row) && back->train.sigreg == 117.25);
    bj_free(back);
}


/* Tests doubles with random bits, in enough rows for the table to grow several times. */
static void test_bits(void) {
    enum { ROWS = 300 };
    static bj_epoch rows[ROWS];
    static const double special[] = {0,       -0.0,         DBL_MAX,     -DBL_MAX,
                                     DBL_MIN, DBL_TRUE_MIN, DBL_EPSILON, NAN,
                                     1e21,    1e-7,         .1,          9007199254740993};
    bj_epoch *back = NULL;
    bj_rng rng = bj_rng_seed(7);
    int count = 0;
    for (int i = 0; i < ROWS; i++) {
        rows[i] = history_row(i + 3);
        for (int f = 0; f < bj_epoch_field_count; f++) {
            double value;
            if (bj_epoch_fields[f].type != BJ_EPOCH_REAL) continue;
            do {
                const uint64_t bits = bj_rng_next(&rng);
                memcpy(&value, &bits, sizeof value);
            } while (isinf(value));
            if (i < (int)(sizeof special / sizeof *special)) value = special[i];
            memcpy((char *)&rows[i] + bj_epoch_fields[f].offset, &value, sizeof value);
        }
    }
    rows[ROWS - 1].step = INT64_MAX;
    CHECK_OK(bj_history_write(folder, rows, ROWS, &err), err);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == ROWS);
    for (int i = 0; i < count; i++) CHECK_MSG(same_bits(&back[i], &rows[i]), "row %d", i);
    CHECK(back && isnan(back[7].lr) && back[5].lr == DBL_TRUE_MIN);
    bj_free(back);

    /* Tests the largest epoch, and no epochs. */
    bj_epoch last = history_row(0);
    last.epoch = INT_MAX;
    CHECK_OK(bj_history_write(folder, &last, 1, &err), err);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 1 && back->epoch == INT_MAX);
    bj_free(back);
    CHECK_OK(bj_history_write(folder, NULL, 0, &err), err);
    CHECK_OK(bj_history_read(&back, &count, folder, &err), err);
    CHECK(count == 0 && !back);
}

/* -------------------------------------------------------------------------------------- reading */

static void test_tolerance(const char *good) {
    int count = -1;
    CHECK_OK(read_status(good, &count), err);
    CHECK(count == 3);
    /* Tests that unknown members of any type are ignored anywhere. */
    CHECK_OK(
        read_status(edited(good, "\"epoch\":1,", "\"lr\"", "\"new\":[{\"lr\":1}],\"lr\""), &count),
        err);
    CHECK_OK(
        read_status(edited(good, "\"epoch\":1,", "\"dev\":{", "\"dev\":{\"step\":null,"), &count),
        err);
    /* Tests that integers are accepted as numbers. */
    CHECK_OK(read_status(edited(good, "\"epoch\":0,", "\"lr\":3.25", "\"lr\":3"), &count), err);
    /* Tests JSON whitespace, and the newlines of other systems. */
    CHECK_OK(read_status(edited(good, "", "{\"schema\":", " { \"schema\" :\t"), &count), err);
    CHECK_OK(read_status(edited(good, "", "}}\n", "}}\r\n"), &count), err);
    CHECK(count == 3);
    /* Tests that a newline may be missing only at the end of the file. */
    static char cut[TEXT];
    snprintf(cut, sizeof cut, "%.*s", (int)strlen(good) - 1, good);
    CHECK_OK(read_status(cut, &count), err);
    CHECK(count == 3);
    cut[strlen(cut) - 1] = '\0';
    CHECK(read_status(cut, &count) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, ":3: not JSON");
}

static void test_refusals(const char *good) {
    static const struct {
        const char *from, *to;
        bj_status code;
        const char *says;
    } cases[] = {
        {"branchjepa.epoch/1", "branchjepa.epoch/2", BJ_EVERSION,
         "'schema' is 'branchjepa.epoch/2', expected 'branchjepa.epoch/1'"},
        {"branchjepa.epoch/1", "branchjepa.table/1", BJ_EFORMAT, "branchjepa.table/1"},
        {"\"branchjepa.epoch/1\"", "1", BJ_EFORMAT, "'schema'"},
        {"\"schema\"", "\"schemas\"", BJ_EFORMAT, "'schema' is missing"},
        {"\"type\":\"epoch\"", "\"type\":\"step\"", BJ_EFORMAT, "'type' is 'step'"},
        {"\"type\":\"epoch\"", "\"type\":7", BJ_EFORMAT, "'type'"},
        {"\"step\":48", "\"step\":48.0", BJ_EFORMAT, "'step' is of type real, expected an integer"},
        {"\"step\":48", "\"step\":-1", BJ_EFORMAT, "'step' is out of range"},
        {"\"step\":48", "\"step\":9223372036854775808", BJ_EFORMAT, "'step' is out of range"},
        {"\"step\":48", "\"step\":null", BJ_EFORMAT, "'step' is of type null"},
        {"\"epoch\":1", "\"epoch\":2147483648", BJ_EFORMAT, "'epoch' is out of range"},
        {"\"epoch\":1", "\"epoch\":2", BJ_EFORMAT, "'epoch' is 2, expected the epoch after 0"},
        {"\"epoch\":1", "\"epoch\":0", BJ_EFORMAT, "'epoch' is 0, expected the epoch after 0"},
        {"\"best\":true", "\"best\":1", BJ_EFORMAT, "'best' is of type uint, expected true or"},
        {"\"best\":true", "\"best\":null", BJ_EFORMAT, "'best'"},
        {"\"lr\":103.25", "\"lr\":1e999", BJ_EFORMAT, "not JSON"},
        {"\"lr\":103.25", "\"lr\":NaN", BJ_EFORMAT, "not JSON"},
        {"\"lr\":103.25", "\"lr\":1,\"lr\":1", BJ_EFORMAT, "'lr' occurs twice"},
        {"\"dev\":{", "\"dev\":null,\"x\":{", BJ_EFORMAT,
         "'dev' is of type null, expected an object"},
        {"\"dev\":{", "\"x\":{", BJ_EFORMAT, "'dev' is missing"},
        {"\"usage\":{", "\"dev\":{},\"usage\":{", BJ_EFORMAT, "'dev' occurs twice"},
        {"}}\n", "}}\n\n", BJ_EFORMAT, "not JSON"},
        {"}}\n", "}}\n[]\n", BJ_EFORMAT, "the line is of type array, expected an object"},
        {"}}\n", "}} {}\n", BJ_EFORMAT, "not JSON"},
    };
    const char *const second = strchr(good, '\n') + 1;
    static char text[TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const bad = edited(second, "", cases[i].from, cases[i].to);
        CHECK_MSG(bad != NULL, "no '%s'", cases[i].from);
        if (!bad) continue;
        snprintf(text, sizeof text, "%.*s%s", (int)(second - good), good, bad);
        const int own_line = !strncmp(cases[i].to, "}}\n", 3); /* the error follows it */
        refuse(text, "", "", "", cases[i].code, own_line ? 3 : 2, cases[i].says);
    }

    /* Tests each member with a wrong name and with a wrong type. */
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const char *const path = bj_epoch_fields[f].path, *const dot = strchr(path, '.');
        char group[64], key[64], says[128], begin[96];
        snprintf(group, sizeof group, "\"%.*s\":{", dot ? (int)(dot - path) : 0, path);
        snprintf(key, sizeof key, "\"%s\":", dot ? dot + 1 : path);
        snprintf(begin, sizeof begin, "%s", dot ? group : "");
        snprintf(says, sizeof says, "member '%s' is missing", path);
        if (bj_epoch_fields[f].optional != BJ_EPOCH_ADDED)
            refuse(good, begin, key, "\"\":", BJ_EFORMAT, 1, says);
        char text_value[80];
        snprintf(text_value, sizeof text_value, "%s\"1\",\"\":", key);
        snprintf(says, sizeof says, "member '%s' is of type string, expected ", path);
        refuse(good, begin, key, text_value, BJ_EFORMAT, 1, says);
    }
}

static void test_places(void) {
    bj_epoch *rows = NULL;
    int count = 7;
    unlink(jsonl);
    CHECK_OK(bj_history_read(&rows, &count, folder, &err), err);
    CHECK(count == 0 && !rows);
    /* Tests that a dangling link and a folder are not treated as missing files. */
    CHECK(!symlink("nowhere", jsonl));
    CHECK(bj_history_read(&rows, &count, folder, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, jsonl);
    unlink(jsonl);
    CHECK(!mkdir(jsonl, 0777));
    CHECK(bj_history_read(&rows, &count, folder, &err) == BJ_EIO);
    rmdir(jsonl);
    CHECK(bj_history_read(&rows, &count, csv, &err) == BJ_EIO); /* a file is no folder */
    char far[5000];
    memset(far, 'x', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    CHECK(bj_history_read(&rows, &count, far, &err) == BJ_EARG);
}

/* -------------------------------------------------------------------------------------- writing */

static int entries(void) {
    DIR *dir = opendir(folder);
    int count = -2; /* . and .. */
    while (dir && readdir(dir)) count++;
    if (dir) closedir(dir);
    return count;
}

/* Tests that a failed write leaves both files unchanged and creates no others. */
static void test_all_or_nothing(void) {
    static char before[2][TEXT], after[2][TEXT];
    bj_epoch rows[3] = {history_row(0), history_row(1), history_row(2)};
    CHECK_OK(bj_history_write(folder, rows, 2, &err), err);
    get_text(before[0], jsonl);
    get_text(before[1], csv);

    rows[1].dev.brier = -INFINITY;
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "metrics.jsonl: epoch 1: dev.brier is infinite");
    rows[1] = history_row(1);
    rows[2].epoch = 3;
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "row 2 has epoch 3, expected the epoch after 1");
    rows[2].epoch = 1;
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_EARG);
    rows[2] = history_row(2);
    rows[0].epoch = -1, rows[1].epoch = 0, rows[2].epoch = 1;
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "row 0 has epoch -1");
    for (int i = 0; i < 3; i++) rows[i] = history_row(i);
    rows[1].step = -5;
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "epoch 1: step is -5");
    rows[1] = history_row(1);
    for (long n = 0;; n++) {
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = bj_history_write(folder, rows, 3, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
        if (status == BJ_OK) {
            CHECK(n >= 2);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM, "allocation %ld: %s", n, err.message);
        get_text(after[0], jsonl);
        CHECK(!strcmp(before[0], after[0]));
    }
    CHECK_OK(bj_history_write(folder, rows, 2, &err), err);

    /* Tests that both files remain unchanged if one of them cannot be replaced. */
    unlink(jsonl);
    CHECK(!mkdir(jsonl, 0777));
    CHECK(bj_history_write(folder, rows, 3, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "metrics.jsonl");
    rmdir(jsonl);
    get_text(after[1], csv);
    CHECK(!strcmp(before[1], after[1]));
    CHECK(entries() == 1);
    CHECK(bj_history_write("/tmp/test_history.none/run", rows, 3, &err) == BJ_EIO);
}

/* Tests a disk with space for metrics.csv but not for metrics.jsonl. The error occurs at the last
 * bytes, or earlier if the buffer cannot hold all bytes. */
static void test_full_disk(void) {
    enum { ROWS = 300 };
    static bj_epoch rows[ROWS];
    struct rlimit old, small;
    struct stat info;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!getrlimit(RLIMIT_FSIZE, &old));
    for (int i = 0; i < ROWS; i++) rows[i] = history_row(i);
    for (int count = 3; count <= ROWS; count += ROWS - 3) {
        CHECK_OK(bj_history_write(folder, rows, count, &err), err);
        CHECK(!stat(csv, &info));
        small = old;
        small.rlim_cur = (rlim_t)info.st_size + 100;
        CHECK(!stat(jsonl, &info) && (rlim_t)info.st_size > small.rlim_cur + 100);
        CHECK_OK(bj_history_write(folder, rows, 1, &err), err);
        CHECK(!stat(csv, &info));
        const off_t size = info.st_size;
        const long live = bj_alloc_live();
        CHECK(!setrlimit(RLIMIT_FSIZE, &small));
        CHECK(bj_history_write(folder, rows, count, &err) == BJ_EIO);
        CHECK(!setrlimit(RLIMIT_FSIZE, &old));
        CHECK_CONTAINS(err.message, "metrics.jsonl: cannot write");
        CHECK(!stat(csv, &info) && info.st_size == size);
        CHECK(entries() == 2 && bj_alloc_live() == live);
    }
}

static void test_memory(const char *good) {
    put_text(good);
    for (long n = 0;; n++) {
        bj_epoch *rows = NULL;
        int count;
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = bj_history_read(&rows, &count, folder, &err);
        bj_alloc_fail_after(-1);
        bj_free(rows);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
        if (status == BJ_OK) {
            CHECK(n >= 4 && count == 3);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM && !rows, "allocation %ld: %s", n, err.message);
    }
}

/* ----------------------------------------------------------------------------------------- main */

static int rewrite(const char *from, const char *to) {
    bj_epoch *rows = NULL;
    int count;
    bj_status status = bj_history_read(&rows, &count, from, &err);
    if (status == BJ_OK) status = bj_history_write(to, rows, count, &err);
    bj_free(rows);
    if (status != BJ_OK) fprintf(stderr, "test_history rewrite: %s\n", err.message);
    return status != BJ_OK;
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "rewrite")) return rewrite(argv[2], argv[3]);
    if (!mkdtemp(folder)) return 1;
    snprintf(jsonl, sizeof jsonl, "%s/metrics.jsonl", folder);
    snprintf(csv, sizeof csv, "%s/metrics.csv", folder);
    test_table();
    test_text();
    test_bits();

    static char good[TEXT];
    const bj_epoch rows[3] = {history_row(0), history_row(1), history_row(2)};
    CHECK_OK(bj_history_write(folder, rows, 3, &err), err);
    get_text(good, jsonl);
    test_tolerance(good);
    test_refusals(good);
    test_memory(good);
    test_places();
    test_all_or_nothing();
    test_full_disk();
    unlink(jsonl);
    unlink(csv);
    CHECK_MSG(!rmdir(folder), "something is left in %s", folder);
    return test_report("history");
}
