/* test_events.c - tests event files: checksums, records, messages, names, and failing writes.
 *
 *   test_events script DIR writes event files according to the lines of standard input:
 *                                 create STEP | scalar STEP VALUE TAG | flush | free
 *   test_events epochs FROM TO  writes the history of a run folder as events into another
 * Both are for peer_events.py, which reads the files with TensorBoard.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <float.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/rng.h"
#include "run/events.h"
#include "run/history.h"
#include "run/history_case.h"
#include "support/test.h"

static char folder[] = "/tmp/test_events.XXXXXX";
static bj_error err;

/* ------------------------------------------------------------------------------------- checksum */

static uint32_t crc_by_bits(const unsigned char *data, size_t size) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* Tests the vectors of RFC 3720, appendix B.4, and compares random bytes with the definition. */
static void test_crc32c(void) {
    unsigned char data[256];
    memset(data, 0, 32);
    CHECK(bj_crc32c(data, 32) == 0x8a9136aa);
    memset(data, 0xff, 32);
    CHECK(bj_crc32c(data, 32) == 0x62a8ab43);
    for (int i = 0; i < 32; i++) data[i] = (unsigned char)i;
    CHECK(bj_crc32c(data, 32) == 0x46dd794e);
    for (int i = 0; i < 32; i++) data[i] = (unsigned char)(31 - i);
    CHECK(bj_crc32c(data, 32) == 0x113fdb5c);
    CHECK(bj_crc32c("123456789", 9) == 0xe3069283);
    CHECK(bj_crc32c(data, 0) == 0);
    bj_rng rng = bj_rng_seed(1);
    for (size_t size = 0; size <= sizeof data; size++) {
        for (size_t i = 0; i < size; i++) data[i] = (unsigned char)bj_rng_next(&rng);
        CHECK_MSG(bj_crc32c(data, size) == crc_by_bits(data, size), "%zu bytes", size);
    }
}

/* ----------------------------------------------------------------------- a reader for the tests */

enum { VALUES = 64, TAG = 1100 };

typedef struct event {
    double wall_time;
    int64_t step;
    char version[32];
    int start; /* has a session log with status START */
    int values;
    char tags[VALUES][TAG];
    float value[VALUES];
} event;

typedef struct cursor {
    const unsigned char *at, *end;
    int bad;
} cursor;

static uint64_t take_fixed(cursor *c, int size) {
    uint64_t value = 0;
    if (c->end - c->at < size) {
        c->bad = 1;
        return 0;
    }
    for (int i = 0; i < size; i++) value |= (uint64_t)*c->at++ << (8 * i);
    return value;
}

static uint64_t take_varint(cursor *c) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint64_t byte = take_fixed(c, 1);
        value |= (byte & 127) << shift;
        if (byte < 128) return value;
    }
    c->bad = 1;
    return 0;
}

static cursor take_block(cursor *c) {
    const uint64_t size = take_varint(c);
    cursor block = {c->at, c->at, 0};
    if (size > (uint64_t)(c->end - c->at)) c->bad = 1;
    else block.end = c->at += size;
    return block;
}

static void take_text(char *out, size_t room, cursor block) {
    snprintf(out, room, "%.*s", (int)(block.end - block.at), (const char *)block.at);
}

static int take_value(event *e, cursor c) {
    const int i = e->values++;
    if (i >= VALUES || c.at == c.end || *c.at++ != 10) return 0; /* 1: tag */
    take_text(e->tags[i], TAG, take_block(&c));
    if (take_fixed(&c, 1) != 21) return 0; /* 2: simple_value */
    const uint32_t bits = (uint32_t)take_fixed(&c, 4);
    memcpy(&e->value[i], &bits, sizeof bits);
    return !c.bad && c.at == c.end;
}

static int take_event(event *e, cursor c) {
    *e = (event){0};
    while (c.at < c.end && !c.bad) {
        const uint64_t key = take_varint(&c);
        uint64_t bits;
        cursor block;
        switch (key) {
        case 9:
            bits = take_fixed(&c, 8);
            memcpy(&e->wall_time, &bits, sizeof bits);
            break;
        case 16: e->step = (int64_t)take_varint(&c); break;
        case 26: take_text(e->version, sizeof e->version, take_block(&c)); break;
        case 42:
            block = take_block(&c);
            while (block.at < block.end) {
                if (*block.at++ != 10 || !take_value(e, take_block(&block)) || block.bad) return 0;
            }
            break;
        case 58:
            block = take_block(&c);
            e->start = block.end - block.at == 2 && block.at[0] == 8 && block.at[1] == 1;
            break;
        default: return 0;
        }
    }
    return !c.bad;
}

static uint32_t masked(const unsigned char *data, size_t size) {
    const uint32_t crc = crc_by_bits(data, size);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* Reads the events of a file. Returns -1 if a record is invalid or truncated. */
static int read_events(event *events, int most, const char *path) {
    char *text = NULL;
    size_t size = 0;
    int count = 0;
    if (bj_file_read(&text, &size, path, 1 << 24, &err) != BJ_OK) return -1;
    cursor c = {(unsigned char *)text, (unsigned char *)text + size, 0};
    while (c.at < c.end && count >= 0) {
        const unsigned char *const head = c.at;
        const uint64_t length = take_fixed(&c, 8);
        const uint32_t head_crc = (uint32_t)take_fixed(&c, 4);
        const cursor message = {c.at, c.at + length, 0};
        if (c.bad || head_crc != masked(head, 8) || length + 4 > (uint64_t)(c.end - c.at) ||
            count == most) {
            count = -1;
            break;
        }
        c.at += length;
        if (take_fixed(&c, 4) != masked(message.at, length) ||
            !take_event(&events[count++], message))
            count = -1;
    }
    bj_free(text);
    return count;
}

/* Lists the names of event files in order and returns their count. */
static int list(char names[][256], int most) {
    struct dirent **entries = NULL;
    int count = 0;
    const int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' && count < most)
            snprintf(names[count++], 256, "%s", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return count;
}

static void clear(void) {
    char names[16][256], path[512];
    const int n = list(names, 16);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%.255s", folder, names[i]);
        unlink(path);
    }
}

/* Reads the events of the only file. */
static int read_only_file(event *events, int most) {
    char names[16][256], path[512];
    if (list(names, 16) != 1) return -1;
    snprintf(path, sizeof path, "%s/%.255s", folder, names[0]);
    return read_events(events, most, path);
}

/* --------------------------------------------------------------------------------------- events */

enum { HEAD = 2 }; /* records of a file without values */
static event found[64];

static void test_head(void) {
    bj_events *events = NULL;
    const double before = (double)time(NULL) - 1;
    CHECK_OK(bj_events_create(&events, folder, 0, &err), err);
    CHECK(read_only_file(found, 64) == HEAD);
    CHECK(!strcmp(found[0].version, "brain.Event:2") && found[0].step == 0 && !found[0].start);
    CHECK(found[1].start && found[1].step == 0 && !*found[1].version);
    CHECK(found[0].wall_time > before && found[0].wall_time < before + 60);
    bj_events_free(events);
    clear();

    CHECK_OK(bj_events_create(&events, folder, 4700, &err), err);
    CHECK(read_only_file(found, 64) == HEAD);
    CHECK(!strcmp(found[0].version, "brain.Event:2") && found[0].step == 0);
    CHECK(found[1].start && found[1].step == 4700 && found[1].values == 0);
    bj_events_free(events);
    bj_events_free(NULL);
    clear();

    CHECK(bj_events_create(&events, folder, -1, &err) == BJ_EARG && !events);
    CHECK(bj_events_create(&events, "/tmp/test_events.none", 0, &err) == BJ_EIO && !events);
    CHECK_CONTAINS(err.message, "/tmp/test_events.none: ");
    CHECK(read_only_file(found, 64) == -1);
}

static void test_scalars(void) {
    static const struct {
        int64_t step;
        double value;
        float wanted;
    } cases[] = {{0, 0, 0},
                 {1, -.1, -.1f},
                 {127, 1e-60, 0},
                 {128, FLT_MAX, FLT_MAX},
                 {16384, DBL_MAX, INFINITY},
                 {INT64_C(1) << 35, -1e39, -INFINITY},
                 {INT64_MAX, INFINITY, INFINITY}};
    enum { CASES = sizeof cases / sizeof *cases };
    static char tag[TAG];
    bj_events *events = NULL;
    CHECK_OK(bj_events_create(&events, folder, 0, &err), err);
    if (!events) return;
    for (int i = 0; i < CASES; i++)
        CHECK_OK(bj_events_scalar(events, cases[i].step, "train/loss", cases[i].value, &err), err);
    CHECK_OK(bj_events_scalar(events, 5, "train/loss", NAN, &err), err); /* left out */
    CHECK(read_only_file(found, 64) == HEAD);                            /* nothing flushed yet */
    CHECK_OK(bj_events_flush(events, &err), err);
    CHECK(read_only_file(found, 64) == HEAD + CASES);
    for (int i = 0; i < CASES; i++) {
        const event *e = &found[HEAD + i];
        CHECK(e->step == cases[i].step && e->values == 1 && !strcmp(e->tags[0], "train/loss"));
        CHECK_MSG(e->value[0] == cases[i].wanted, "%g", e->value[0]);
    }
    CHECK_OK(bj_events_flush(events, &err), err); /* nothing is written twice */
    CHECK(read_only_file(found, 64) == HEAD + CASES);

    /* Tests tags whose length takes one or two bytes, and text that is not ASCII. */
    static const int sizes[] = {1, 113, 114, 119, 120, 121, 127, 128, 1024};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES; i++) {
        memset(tag, 'a' + i, (size_t)sizes[i]);
        tag[sizes[i]] = '\0';
        CHECK_OK(bj_events_scalar(events, i, tag, i, &err), err);
    }
    CHECK_OK(bj_events_scalar(events, 1, "dev/\xc3\xbc", 1, &err), err);
    CHECK_OK(bj_events_flush(events, &err), err);
    CHECK(read_only_file(found, 64) == HEAD + CASES + SIZES + 1);
    for (int i = 0; i < SIZES; i++) {
        const event *e = &found[HEAD + CASES + i];
        CHECK((int)strlen(e->tags[0]) == sizes[i] && e->tags[0][0] == 'a' + i);
        CHECK(e->value[0] == (float)i && e->step == i);
    }

    /* Tests values that readers would reject. */
    memset(tag, 'a', 1025);
    tag[1025] = '\0';
    CHECK(bj_events_scalar(events, 1, tag, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "1025 bytes");
    CHECK(bj_events_scalar(events, 1, "", 1, &err) == BJ_EARG);
    CHECK(bj_events_scalar(events, 1, NULL, 1, &err) == BJ_EARG);
    CHECK(bj_events_scalar(events, 1, "dev/\xfc", 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "not UTF-8 at byte 4 of 5");
    CHECK(bj_events_scalar(events, -1, "dev/x", 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "step is -1");
    const bj_epoch early = {.step = -1};
    CHECK(bj_events_epoch(events, &early, &err) == BJ_EARG);
    /* Tests that events are lost if they are not flushed. */
    CHECK_OK(bj_events_scalar(events, 9, "dev/x", 1, &err), err);
    bj_events_free(events);
    CHECK(read_only_file(found, 64) == HEAD + CASES + SIZES + 1);
    clear();
}

/* The tags on which other programs rely. */
static void test_epoch(void) {
    static const char *const tags[] = {"opt/lr",
                                       "opt/grad_norm",
                                       "opt/scenes_per_s",
                                       "train/loss",
                                       "train/latent",
                                       "train/decoded",
                                       "train/rec",
                                       "train/router",
                                       "train/usage",
                                       "train/variance",
                                       "train/rank",
                                       "train/participation",
                                       "train/sigreg",
                                       "train/vicreg_variance",
                                       "train/vicreg_covariance",
                                       "dev/traj_es",
                                       "dev/traj_obs",
                                       "dev/traj_disp",
                                       "dev/end_es",
                                       "dev/latent_es",
                                       "dev/exp_ade",
                                       "dev/exp_fde",
                                       "dev/top1_ade",
                                       "dev/top1_fde",
                                       "dev/top1_mr",
                                       "dev/min_ade",
                                       "dev/min_fde",
                                       "dev/min_mr",
                                       "dev/brier",
                                       "dev/ece",
                                       "dev/exp_entropy",
                                       "dev/active_heads",
                                       "dev/neff_collision",
                                       "dev/dedup_support",
                                       "dev/brier_min_fde_1",
                                       "dev/min_ade_6",
                                       "dev/min_fde_6",
                                       "dev/mr_6",
                                       "dev/brier_min_fde_6",
                                       "health/mean_std",
                                       "health/low_std_fraction",
                                       "health/entropy_rank",
                                       "health/participation",
                                       "dev/usage_least",
                                       "dev/usage_most",
                                       "dev/decoder_ade",
                                       "dev/decoder_fde",
                                       "maze/plan_all",
                                       "maze/verified_route",
                                       "maze/macro_precision",
                                       "maze/macro_precision_self",
                                       "maze/held_recall",
                                       "maze/cov_r",
                                       "maze/predicted_edges",
                                       "maze/separated",
                                       "maze/closest",
                                       "maze/cov_three",
                                       "maze/heads_three",
                                       "encoder/attention_tokens",
                                       "encoder/context_norm",
                                       "exchange/plain",
                                       "exchange/map",
                                       "exchange/neighbors",
                                       "exchange/focal"};
    enum { TAGS = sizeof tags / sizeof *tags };
    const bj_epoch row = history_row(3);
    bj_epoch some = row, none = {.step = 7};
    bj_events *events = NULL;
    some.dev.traj_es = some.health.participation = NAN;
    for (int f = 0; f < bj_epoch_field_count; f++)
        if (bj_epoch_fields[f].type == BJ_EPOCH_REAL)
            memcpy((char *)&none + bj_epoch_fields[f].offset, &(double){NAN}, sizeof(double));
    CHECK_OK(bj_events_create(&events, folder, 0, &err), err);
    if (!events) return;
    CHECK_OK(bj_events_epoch(events, &row, &err), err);
    CHECK_OK(bj_events_epoch(events, &none, &err), err);
    CHECK_OK(bj_events_epoch(events, &some, &err), err);
    CHECK_OK(bj_events_flush(events, &err), err);
    bj_events_free(events);
    CHECK(read_only_file(found, 64) == HEAD + 2);
    CHECK(found[2].step == 144 && found[2].values == TAGS && found[3].values == TAGS - 2);
    for (int i = 0; i < TAGS; i++) CHECK_MSG(!strcmp(found[2].tags[i], tags[i]), "%s", tags[i]);
    CHECK(found[2].value[0] == (float)row.lr && found[2].value[3] == (float)row.train.total);
    CHECK(found[2].value[15] == (float)row.dev.traj_es);
    CHECK(found[2].value[TAGS - 1] == (float)row.exchange.focal);
    clear();
}

/* ---------------------------------------------------------------------------------------- files */

/* Tests that a later file has a later name, independent of the clock. */
static void test_names(void) {
    char names[16][256], path[512], expected[64];
    bj_events *first = NULL, *second = NULL, *third = NULL;
    CHECK_OK(bj_events_create(&first, folder, 0, &err), err);
    list(names, 16);
    const long long began = atoll(names[0] + strlen("events.out.tfevents."));
    CHECK(!strncmp(names[0], "events.out.tfevents.", 20) && names[0][30] == '.');
    CHECK_MSG(llabs(began - (long long)time(NULL)) <= 5, "%s", names[0]);
    snprintf(expected, sizeof expected, ".%ld", (long)getpid());
    CHECK_CONTAINS(names[0], expected);
    CHECK_OK(bj_events_create(&second, folder, 3, &err), err); /* within the second */
    CHECK(list(names, 16) == 2);
    snprintf(path, sizeof path, "%s/%.255s", folder, names[1]);
    CHECK(read_events(found, 64, path) == HEAD && found[1].step == 3);
    bj_events_free(first);
    bj_events_free(second);

    /* Tests a file with a future time from another writer, and names that are similar to those of
     * event files. */
    snprintf(path, sizeof path, "%s/events.out.tfevents.4000000000.other.1.v2", folder);
    CHECK_OK(bj_file_write(path, "", 0, &err), err);
    snprintf(path, sizeof path, "%s/events.out.tfevents.99999999999.x", folder);
    CHECK_OK(bj_file_write(path, "", 0, &err), err);
    CHECK_OK(bj_events_create(&third, folder, 5, &err), err);
    CHECK(list(names, 16) == 5);
    CHECK_CONTAINS(names[3], "tfevents.4000000001.");
    bj_events_free(third);
    clear();

    /* Tests that numbers are appended if no later time is possible. */
    snprintf(path, sizeof path, "%s/events.out.tfevents.9999999999.0.1", folder);
    CHECK_OK(bj_file_write(path, "", 0, &err), err);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(bj_events_create(&first, folder, 0, &err), err);
        bj_events_free(first);
    }
    CHECK(list(names, 16) == 4);
    for (int i = 1; i < 4; i++) {
        snprintf(path, sizeof path, "%.255s%s%.0d", names[1], i > 1 ? "." : "", i - 1);
        CHECK_MSG(!strcmp(names[i], path), "%s, expected %s", names[i], path);
    }
    clear();
}

static int free_descriptor(void) {
    const int fd = dup(0);
    close(fd);
    return fd;
}

/* Tests a disk that becomes full within a record. The file must end with the previous record, and
 * the next flush must write all records. */
static void test_full_disk(void) {
    struct rlimit old, small;
    char names[16][256], path[512];
    bj_events *events = NULL;
    struct stat info;
    const int fd = free_descriptor();
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!getrlimit(RLIMIT_FSIZE, &old));
    CHECK_OK(bj_events_create(&events, folder, 0, &err), err);
    if (!events) return;
    CHECK_OK(bj_events_scalar(events, 1, "a", 1, &err), err);
    CHECK_OK(bj_events_flush(events, &err), err);
    CHECK(list(names, 16) == 1);
    snprintf(path, sizeof path, "%s/%.255s", folder, names[0]);
    CHECK(!stat(path, &info));
    const off_t size = info.st_size;
    for (int i = 2; i <= 5; i++) CHECK_OK(bj_events_scalar(events, i, "a", i, &err), err);
    small = old;
    small.rlim_cur = (rlim_t)size + 60; /* a record and a half */
    CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    CHECK(bj_events_flush(events, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, names[0]);
    CHECK(!stat(path, &info) && info.st_size == size);
    CHECK(!setrlimit(RLIMIT_FSIZE, &old));
    CHECK_OK(bj_events_scalar(events, 6, "a", 6, &err), err);
    CHECK_OK(bj_events_flush(events, &err), err);
    CHECK(read_only_file(found, 64) == HEAD + 6);
    for (int i = 1; i <= 6; i++) {
        const event *e = &found[HEAD + i - 1];
        CHECK(e->step == i && e->value[0] == (float)i);
    }
    bj_events_free(events);
    clear();

    /* Tests that no file remains if its first records do not fit. */
    small.rlim_cur = 10;
    CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    CHECK(bj_events_create(&events, folder, 0, &err) == BJ_EIO && !events);
    CHECK(!setrlimit(RLIMIT_FSIZE, &old));
    CHECK(list(names, 16) == 0);
    CHECK(free_descriptor() == fd);
}

static bj_status write_some(bj_events **events) {
    const bj_epoch row = history_row(1);
    BJ_TRY(bj_events_create(events, folder, 2, &err));
    for (int i = 0; i < 3; i++) BJ_TRY(bj_events_epoch(*events, &row, &err));
    BJ_TRY(bj_events_scalar(*events, 1, "a", 1, &err));
    return bj_events_flush(*events, &err);
}

static void test_memory(void) {
    for (long n = 0;; n++) {
        bj_events *events = NULL;
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = write_some(&events);
        bj_alloc_fail_after(-1);
        /* Tests that an event that cannot be added has no effect. */
        if (events) {
            CHECK_OK(bj_events_flush(events, &err), err);
            CHECK(read_only_file(found, 64) >= HEAD);
        }
        bj_events_free(events);
        clear();
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
        if (status == BJ_OK) {
            CHECK(n >= 3);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM, "allocation %ld: %s", n, err.message);
    }
}

/* ----------------------------------------------------------------------------------------- main */

static bj_status follow(bj_events **events, const char *dir, char *line) {
    char tag[TAG];
    long long step = 0;
    double value = 0;
    if (sscanf(line, "create %lld", &step) == 1) return bj_events_create(events, dir, step, &err);
    if (!*events) return BJ_FAIL(&err, BJ_EARG, "no file for: %s", line);
    if (sscanf(line, "scalar %lld %lf %1024s", &step, &value, tag) == 3)
        return bj_events_scalar(*events, step, tag, value, &err);
    if (!strcmp(line, "flush\n")) return bj_events_flush(*events, &err);
    if (strcmp(line, "free\n")) return BJ_FAIL(&err, BJ_EARG, "not understood: %s", line);
    bj_events_free(*events);
    *events = NULL;
    return BJ_OK;
}

static bj_status script(const char *dir) {
    char line[2 * TAG];
    bj_events *events = NULL;
    bj_status status = BJ_OK;
    while (status == BJ_OK && fgets(line, sizeof line, stdin)) status = follow(&events, dir, line);
    bj_events_free(events);
    return status;
}

static bj_status epochs(const char *from, const char *to) {
    bj_epoch *rows = NULL;
    bj_events *events = NULL;
    int count;
    bj_status status = bj_history_read(&rows, &count, from, &err);
    if (status == BJ_OK) status = bj_events_create(&events, to, 0, &err);
    for (int i = 0; i < count && status == BJ_OK; i++)
        status = bj_events_epoch(events, &rows[i], &err);
    if (status == BJ_OK) status = bj_events_flush(events, &err);
    bj_events_free(events);
    bj_free(rows);
    return status;
}

static int work(int argc, char **argv) {
    bj_status status = BJ_FAIL(&err, BJ_EARG, "expected script DIR or epochs FROM TO");
    if (argc == 3 && !strcmp(argv[1], "script")) status = script(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "epochs")) status = epochs(argv[2], argv[3]);
    if (status != BJ_OK) fprintf(stderr, "test_events: %s\n", err.message);
    return status != BJ_OK;
}

int main(int argc, char **argv) {
    if (argc > 1) return work(argc, argv);
    if (!mkdtemp(folder)) return 1;
    test_crc32c();
    test_head();
    test_scalars();
    test_epoch();
    test_names();
    test_full_disk();
    test_memory();
    CHECK_MSG(!rmdir(folder), "something is left in %s", folder);
    return test_report("events");
}
