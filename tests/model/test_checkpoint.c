/* test_checkpoint.c - tests that saved models are loaded bit for bit and that damaged files are
 * rejected.
 *
 * Without arguments the program runs the tests. With arguments:
 *   write PATH   saves the model of the tests, in the precision of this build
 *   read PATH    loads the file, compares it with that model and prints "ok" or the difference
 * tests/golden/checkpoint_v1.safetensors was written by the first version of this program in single
 * precision. Do not regenerate it, because files of that version must stay readable.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "core/status.h"
#include "support/test.h"

/* Digest of the file in tests/golden. */
#define GOLDEN_DIGEST "9a64f6be230c96cdde401dee7e7671c4560cc3b48449893c00e081afebb37487"

static char folder[] = "/tmp/test_checkpoint.XXXXXX";
static char good[64], bad[64]; /* the only two files that the tests use */

/* Returns a small architecture in which as many sizes as possible are different. */
static bj_arch small_arch(void) {
    return (bj_arch){.kind = BJ_MODEL_BRANCH,
                     .scales = BJ_SCALES_FIXED,
                     .obs = 3,
                     .fut = 10,
                     .neighbors = 9,
                     .polylines = 12,
                     .points = 2,
                     .embed = 4,
                     .heads = 2,
                     .token_hidden = 5,
                     .latent = 6,
                     .proj_hidden = 7,
                     .atoms = 3,
                     .atom_hidden = 8,
                     .router_hidden = 11,
                     .decoder_hidden = 13,
                     .trunk = 14,
                     .dt = 0.1};
}

static const bj_fact run_facts[] = {{"seed", "7"}, {"objective", "fullset"}, {"note", "a\n\"b\""}};
enum { RUN_FACTS = 3, SEED = 7 };

static bj_status save_small(const char *path, bj_error *err) {
    const bj_arch arch = small_arch();
    bj_model *model = NULL;
    BJ_TRY(bj_model_create(&model, &arch, SEED, err));
    const bj_status status = bj_model_save(model, path, run_facts, RUN_FACTS, err);
    bj_model_free(model);
    return status;
}

static int same_arch(const bj_arch *a, const bj_arch *b) {
    return a->kind == b->kind && a->scales == b->scales && a->weighting == b->weighting &&
           a->obs == b->obs && a->fut == b->fut && a->neighbors == b->neighbors &&
           a->polylines == b->polylines && a->points == b->points && a->embed == b->embed &&
           a->heads == b->heads && a->token_hidden == b->token_hidden && a->latent == b->latent &&
           a->proj_hidden == b->proj_hidden && a->atoms == b->atoms &&
           a->atom_hidden == b->atom_hidden && a->router_hidden == b->router_hidden &&
           a->decoder_hidden == b->decoder_hidden && a->trunk == b->trunk && a->dt == b->dt;
}

static int same_model(const bj_model *a, const bj_model *b) {
    if (!same_arch(bj_model_arch(a), bj_model_arch(b))) return 0;
    const int count = bj_model_tensor_count(a);
    if (count != bj_model_tensor_count(b)) return 0;
    for (int i = 0; i < count; i++) {
        const bj_tensor x = bj_model_tensor(a, i), y = bj_model_tensor(b, i);
        if (strcmp(x.name, y.name) || x.size != y.size ||
            memcmp(x.data, y.data, x.size * sizeof *x.data))
            return 0;
    }
    return 1;
}

/* ------------------------------------------------------------------------------- editable file */

enum { MOST = 64 };

typedef struct contents {
    bj_safetensors *st;
    bj_tensor_view tensors[MOST];
    bj_fact facts[MOST];
    int count, facts_count;
    char hex[BJ_SHA256_HEX];
} contents;

static void read_contents(contents *c, const char *path) {
    bj_error err = {0};
    memset(c, 0, sizeof *c);
    CHECK_OK(bj_safetensors_open(&c->st, path, &err), err);
    if (!c->st) exit(test_report("checkpoint"));
    c->count = bj_safetensors_count(c->st);
    c->facts_count = bj_safetensors_metadata_count(c->st);
    CHECK(c->count < MOST && c->facts_count < MOST);
    for (int i = 0; i < c->count; i++) c->tensors[i] = *bj_safetensors_at(c->st, i);
    for (int i = 0; i < c->facts_count; i++) c->facts[i] = bj_safetensors_metadata_at(c->st, i);
}

static bj_tensor_view *tensor_of(contents *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->tensors[i].name, name)) return &c->tensors[i];
    CHECK_MSG(0, "no tensor %s", name);
    exit(test_report("checkpoint"));
}

static bj_fact *fact_of(contents *c, const char *key) {
    for (int i = 0; i < c->facts_count; i++)
        if (!strcmp(c->facts[i].key, key)) return &c->facts[i];
    CHECK_MSG(0, "no metadata %s", key);
    exit(test_report("checkpoint"));
}

/* Reimplements the digest of docs/FORMAT.md with one buffer and selection sort. */
static void sign(contents *c) {
    static unsigned char text[1 << 20];
    unsigned char *end = text;
    for (int i = 0; i < c->count; i++)
        for (int j = i + 1; j < c->count; j++)
            if (strcmp(c->tensors[j].name, c->tensors[i].name) < 0) {
                const bj_tensor_view t = c->tensors[i];
                c->tensors[i] = c->tensors[j];
                c->tensors[j] = t;
            }
    for (int i = 0; i < c->facts_count; i++)
        for (int j = i + 1; j < c->facts_count; j++)
            if (strcmp(c->facts[j].key, c->facts[i].key) < 0) {
                const bj_fact f = c->facts[i];
                c->facts[i] = c->facts[j];
                c->facts[j] = f;
            }
    for (int i = 0; i < c->facts_count; i++)
        if (strcmp(c->facts[i].key, "sha256"))
            end += sprintf((char *)end, "%s%c%s%c", c->facts[i].key, 0, c->facts[i].value, 0);
    for (int i = 0; i < c->count; i++) {
        const bj_tensor_view *t = &c->tensors[i];
        const uint64_t rank = (uint64_t)t->rank;
        size_t bytes = bj_dtype_size(t->dtype);
        end += sprintf((char *)end, "%s%c%s%c", t->name, 0, bj_dtype_name(t->dtype), 0);
        memcpy(end, &rank, 8);
        memcpy(end + 8, t->shape, 8 * (size_t)t->rank);
        end += 8 + 8 * t->rank;
        for (int d = 0; d < t->rank; d++) bytes *= (size_t)t->shape[d];
        memcpy(end, t->data, bytes);
        end += bytes;
    }
    bj_sha256_memory(c->hex, text, (size_t)(end - text));
    fact_of(c, "sha256")->value = c->hex;
}

static void write_contents(contents *c) {
    bj_error err = {0};
    CHECK_OK(bj_safetensors_write(bad, c->tensors, c->count, c->facts, c->facts_count, &err), err);
    bj_safetensors_close(c->st);
}

static void refused(bj_status code, const char *message) {
    bj_error err = {0};
    bj_model *model = (bj_model *)&err; /* must be overwritten */
    const bj_status status = bj_model_load(&model, bad, &err);
    CHECK_MSG(status == code && err.code == code, "%s instead of %s: %s", bj_status_name(status),
              bj_status_name(code), err.message);
    CHECK(model == NULL);
    CHECK_CONTAINS(err.message, message);
    CHECK_CONTAINS(err.message, bad);
    CHECK(bj_model_load(&model, bad, NULL) == code);
    if (status == BJ_OK) bj_model_free(model);
}

/* ---------------------------------------------------------------------------------------- tests */

static void round_trip(bj_arch arch) {
    bj_error err = {0};
    bj_model *model = NULL, *copy = NULL;
    CHECK_OK(bj_model_create(&model, &arch, SEED, &err), err);
    CHECK_OK(bj_model_save(model, good, run_facts, RUN_FACTS, &err), err);
    CHECK_OK(bj_model_load(&copy, good, &err), err);
    CHECK(model && copy && same_model(model, copy));
    bj_model_free(copy);

    contents c;
    read_contents(&c, good);
    CHECK(c.count == bj_model_tensor_count(model));
    for (int i = 0; i < c.count; i++) { /* in model order */
        const bj_tensor t = bj_model_tensor(model, i);
        CHECK(!strcmp(c.tensors[i].name, t.name) && c.tensors[i].rank == t.rank);
        CHECK(c.tensors[i].dtype == BJ_DTYPE_REAL && c.tensors[i].count == t.size);
        CHECK(!memcmp(c.tensors[i].data, t.data, c.tensors[i].bytes));
    }
    for (int i = 0; i < RUN_FACTS; i++)
        CHECK(!strcmp(fact_of(&c, run_facts[i].key)->value, run_facts[i].value));
    char stored[BJ_SHA256_HEX];
    strcpy(stored, fact_of(&c, "sha256")->value);
    sign(&c);
    CHECK(!strcmp(stored, c.hex));
    bj_safetensors_close(c.st);
    bj_model_free(model);
}

static void test_round_trips(void) {
    bj_arch arch = small_arch();
    round_trip(arch);
    arch.scales = BJ_SCALES_GLOBAL;
    round_trip(arch);
    arch.scales = BJ_SCALES_COMPONENT;
    round_trip(arch);
    arch = small_arch();
    arch.atoms = 1;
    arch.polylines = 0;
    arch.dt = 1.0 / 3;
    round_trip(arch);
    arch = small_arch();
    arch.kind = BJ_MODEL_OUTPUT_ONLY;
    round_trip(arch);
    arch.weighting = BJ_WEIGHTS_UNIFORM;
    round_trip(arch);
    arch = small_arch();
    arch.weighting = BJ_WEIGHTS_UNIFORM;
    round_trip(arch);
}

/* Tests that a file without "weighting", which older versions wrote, is loaded with router
 * weights. */
static void test_weighting(void) {
    static const struct {
        const char *value; /* NULL: entry is missing */
        bj_weighting expected;
    } cases[] = {
        {NULL, BJ_WEIGHTS_ROUTER}, {"router", BJ_WEIGHTS_ROUTER}, {"uniform", BJ_WEIGHTS_UNIFORM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_error err = {0};
        bj_model *model = NULL;
        contents c;
        read_contents(&c, good);
        bj_fact *const weighting = fact_of(&c, "weighting");
        weighting->value = cases[i].value;
        if (!cases[i].value) *weighting = c.facts[--c.facts_count];
        sign(&c);
        write_contents(&c);
        CHECK_OK(bj_model_load(&model, bad, &err), err);
        CHECK(model && bj_model_arch(model)->weighting == cases[i].expected);
        bj_model_free(model);
    }
}

/* Tests the keys and values that other programs rely on. */
static void test_metadata(void) {
    static const bj_fact expected[] = {{"format", "branchjepa-model"},
                                       {"format_version", "1"},
                                       {"model", "branch"},
                                       {"scales", "fixed"},
                                       {"weighting", "router"},
                                       {"obs", "3"},
                                       {"fut", "10"},
                                       {"neighbors", "9"},
                                       {"polylines", "12"},
                                       {"points", "2"},
                                       {"embed", "4"},
                                       {"heads", "2"},
                                       {"token_hidden", "5"},
                                       {"latent", "6"},
                                       {"proj_hidden", "7"},
                                       {"atoms", "3"},
                                       {"atom_hidden", "8"},
                                       {"router_hidden", "11"},
                                       {"decoder_hidden", "13"},
                                       {"trunk", "14"},
                                       {"dt", "0.1"}};
    bj_error err = {0};
    contents c;
    CHECK_OK(save_small(good, &err), err);
    read_contents(&c, good);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK(!strcmp(fact_of(&c, expected[i].key)->value, expected[i].value));
    CHECK(c.facts_count == (int)(sizeof expected / sizeof *expected) + RUN_FACTS + 1);
    bj_safetensors_close(c.st);

    char *first, *second;
    size_t size, again;
    CHECK_OK(bj_file_read(&first, &size, good, 1 << 20, &err), err);
    CHECK_OK(save_small(good, &err), err);
    CHECK_OK(bj_file_read(&second, &again, good, 1 << 20, &err), err);
    CHECK(size == again && !memcmp(first, second, size));
    bj_free(first);
    bj_free(second);
}

/* Tests that a locale with a decimal comma does not change the file. This part is skipped silently
 * if no such locale is installed. The tests of bj_json_number_* below do not need one. */
static void test_numbers(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    char text[BJ_JSON_NUMBER];
    double value = 0;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
        CHECK_OK(save_small(bad, &err), err);
        CHECK_OK(bj_model_load(&model, bad, &err), err);
        bj_model_free(model);
        setlocale(LC_NUMERIC, "C");
    }
    static const double exact[] = {0.1, 1.0 / 3, 5, 1e-300, -2.5e17, 0x1.fffffffffffffp+1023};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        CHECK(bj_json_number_write(text, exact[i]));
        CHECK(bj_json_number_read(&value, text) && value == exact[i]);
    }
    CHECK(bj_json_number_write(text, 0.1) && !strcmp(text, "0.1"));
    CHECK(!bj_json_number_write(text, (double)NAN) && !bj_json_number_write(text, HUGE_VAL));
    CHECK(bj_json_number_read(&value, "3e-4") && value == 3e-4);
    CHECK(bj_json_number_read(&value, "7") && value == 7);
    static const char *const wrong[] = {"",    "x",   "1x",    "0,1",  " 1", "1 ",
                                        "nan", "inf", "1e999", "0x10", "1."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_MSG(!bj_json_number_read(&value, wrong[i]), "'%s'", wrong[i]);
}

/* Tests that files in the other precision and in half precision are converted and pass the digest
 * check. */
static void test_other_precision(void) {
    bj_error err = {0};
    bj_model *model = NULL, *copy = NULL;
    const bj_arch arch = small_arch();
    contents c;
    CHECK_OK(bj_model_create(&model, &arch, SEED, &err), err);
    CHECK_OK(save_small(good, &err), err);
    static double as_double[8192];
    static float as_float[8192];
    for (int to_double = 0; to_double < 2; to_double++) {
        size_t used = 0;
        read_contents(&c, good);
        for (int i = 0; i < c.count; i++) {
            const bj_real *from = c.tensors[i].data;
            c.tensors[i].data = to_double ? (void *)(as_double + used) : (void *)(as_float + used);
            c.tensors[i].dtype = to_double ? BJ_DTYPE_F64 : BJ_DTYPE_F32;
            for (size_t j = 0; j < c.tensors[i].count; j++, used++) {
                CHECK(used < 8192);
                as_double[used] = from[j];
                as_float[used] = (float)from[j];
            }
        }
        sign(&c);
        write_contents(&c);
        CHECK_OK(bj_model_load(&copy, bad, &err), err);
        CHECK(copy && same_model(model, copy)); /* initial weights can be represented as floats in
                                                   both builds */
        bj_model_free(copy);
    }
    bj_model_free(model);

    read_contents(&c, good);
    static int32_t integers[MOST];
    tensor_of(&c, "decoder.2.bias")->dtype = BJ_DTYPE_I32;
    tensor_of(&c, "decoder.2.bias")->data = integers;
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'decoder.2.bias': dtype I32, expected F64, F32, F16 or BF16");
}

/* Tests wrong names and shapes in files with a correct digest, so that the digest check cannot
 * detect them. */
static void test_wrong_tensors(void) {
    contents c;
    read_contents(&c, good);
    tensor_of(&c, "router.2.bias")->name = "router.2.offset";
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'router.2.bias' is missing, "
                        "but there is an unknown tensor 'router.2.offset'");

    read_contents(&c, good);
    *tensor_of(&c, "atoms.1.0.weight") = c.tensors[--c.count];
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'atoms.1.0.weight': is missing");

    read_contents(&c, good);
    c.tensors[c.count] = c.tensors[0];
    c.tensors[c.count++].name = "atoms.3.0.weight";
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT,
            "tensor 'atoms.3.0.weight' is unknown, because the architecture has no such tensor");

    read_contents(&c, good);
    tensor_of(&c, "router.0.weight")->shape[0] = 6;
    tensor_of(&c, "router.0.weight")->shape[1] = 11;
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'router.0.weight': shape [6,11], expected [11,6]");

    read_contents(&c, good);
    bj_tensor_view *flat = tensor_of(&c, "router.0.weight");
    flat->rank = 1;
    flat->shape[0] = 66;
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'router.0.weight': shape [66], expected [11,6]");

    /* Exchange the names of two tensors with equal shapes, which only the digest check detects. */
    read_contents(&c, good);
    const char *name = tensor_of(&c, "atoms.0.0.weight")->name;
    bj_tensor_view *other = tensor_of(&c, "atoms.1.0.weight");
    tensor_of(&c, "atoms.0.0.weight")->name = other->name;
    other->name = name;
    write_contents(&c);
    refused(BJ_EFORMAT, "checksum of the content is ");

    static const bj_real bad_values[2] = {(bj_real)NAN, -(bj_real)INFINITY};
    for (int i = 0; i < 2; i++) {
        static bj_real bias[20];
        read_contents(&c, good);
        memcpy(bias, tensor_of(&c, "decoder.2.bias")->data, sizeof bias);
        bias[17] = bad_values[i];
        tensor_of(&c, "decoder.2.bias")->data = bias;
        sign(&c);
        write_contents(&c);
        refused(BJ_ENONFINITE, i ? "tensor 'decoder.2.bias': value 17 is -inf"
                                 : "tensor 'decoder.2.bias': value 17 is ");
    }
}

static void test_wrong_metadata(void) {
    static const struct {
        const char *key, *value; /* NULL: entry is missing */
        bj_status code;
        const char *message;
    } cases[] = {
        {"format", NULL, BJ_EFORMAT, "metadata 'format' is missing"},
        {"format", "pt", BJ_EFORMAT, "metadata 'format' is 'pt', expected branchjepa-model"},
        {"format_version", NULL, BJ_EFORMAT, "metadata 'format_version' is missing"},
        {"format_version", "2", BJ_EVERSION, "format version is '2', but this library reads 1"},
        {"model", "point", BJ_EFORMAT,
         "metadata 'model' is 'point', "
         "expected branch, outputonly, fused, variational or codebook"},
        {"scales", "\x1b[2J", BJ_EFORMAT, "metadata 'scales' is '?[2J', expected fixed, global or"},
        {"weighting", "even", BJ_EFORMAT,
         "metadata 'weighting' is 'even', expected router or uniform"},
        {"weighting", "", BJ_EFORMAT, "metadata 'weighting' is '', expected router or uniform"},
        {"heads", NULL, BJ_EFORMAT, "metadata 'heads' is missing"},
        {"heads", "", BJ_EFORMAT, "metadata 'heads' is '', expected an integer"},
        {"heads", "2.0", BJ_EFORMAT, "metadata 'heads' is '2.0', expected an integer"},
        {"heads", "-2", BJ_EFORMAT, "metadata 'heads' is '-2', expected an integer"},
        {"heads", "4294967298", BJ_EFORMAT,
         "metadata 'heads' is '4294967298', expected an integer"},
        {"heads", "0", BJ_EFORMAT, "architecture: heads is 0, expected 1 to"},
        {"heads", "3", BJ_EFORMAT,
         "architecture: embed is 4, expected a multiple of the number of heads (3)"},
        {"dt", "zero", BJ_EFORMAT, "metadata 'dt' is 'zero', expected a number"},
        {"dt", "0", BJ_EFORMAT, "architecture: dt is 0"},
        {"latent", "7", BJ_EFORMAT, "tensor 'encoder.proj.2.weight': shape [6,7], expected [7,7]"},
        {"atoms", "2", BJ_EFORMAT, "tensor 'router.2.weight': shape [3,11], expected [2,11]"},
        {"atoms", "4", BJ_EFORMAT, "tensor 'atoms.3.0.weight': is missing"},
        {"model", "outputonly", BJ_EFORMAT,
         "tensor 'atom.0.weight' is missing, "
         "but there is an unknown tensor 'atoms.0.0.bias'"},
        {"scales", "global", BJ_EFORMAT, "tensor 'log_sz': is missing"},
        {"sha256", NULL, BJ_EFORMAT, "metadata 'sha256' is missing"},
    };
    contents c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_contents(&c, good);
        fact_of(&c, cases[i].key)->value = cases[i].value;
        if (!cases[i].value) *fact_of(&c, cases[i].key) = c.facts[--c.facts_count];
        if (strcmp(cases[i].key, "sha256")) sign(&c);
        write_contents(&c);
        refused(cases[i].code, cases[i].message);
    }
    /* Entries that do not affect any shape, including run facts, are protected by the digest. */
    static const bj_fact silent[] = {{"neighbors", "8"}, {"heads", "4"}, {"dt", "0.2"},
                                     {"trunk", "15"},    {"seed", "8"},  {"weighting", "uniform"},
                                     {"sha256", "0"}};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        read_contents(&c, good);
        fact_of(&c, silent[i].key)->value = silent[i].value;
        write_contents(&c);
        refused(BJ_EFORMAT, "checksum of the content is ");
    }

    /* Sizes that would need terabytes are rejected before any allocation, because they do not match
     * the file. */
    static const char *const grown[] = {"latent",       "atom_hidden", "decoder_hidden",
                                        "token_hidden", "proj_hidden", "router_hidden"};
    read_contents(&c, good);
    for (size_t i = 0; i < sizeof grown / sizeof *grown; i++)
        fact_of(&c, grown[i])->value = "65536";
    sign(&c);
    write_contents(&c);
    refused(BJ_EFORMAT, "tensor 'encoder.neighbor.0.weight': shape [5,21], expected [65536,21]");
}

/* Tests that every flipped bit, every shorter file and every longer file is rejected. */
static void test_damaged_bytes(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    char *file;
    size_t size;
    int loaded = 0;
    CHECK_OK(bj_file_read(&file, &size, good, 1 << 20, &err), err);
    const int fd = open(bad, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, file, size) == (ssize_t)size);
    for (size_t at = 0; at < size; at++) {
        const char flipped = (char)(file[at] ^ 1);
        CHECK(pwrite(fd, &flipped, 1, (off_t)at) == 1);
        loaded += bj_model_load(&model, bad, &err) == BJ_OK;
        CHECK_CONTAINS(err.message, bad);
        bj_model_free(model);
        CHECK(pwrite(fd, file + at, 1, (off_t)at) == 1);
    }
    CHECK_MSG(loaded == 0, "%d damaged files were loaded", loaded);
    CHECK_OK(bj_model_load(&model, bad, &err), err); /* the undamaged file loads */
    bj_model_free(model);

    CHECK(pwrite(fd, "", 1, (off_t)size) == 1);
    refused(BJ_EFORMAT, "tensor 'decoder.2.bias': the last tensor ends at byte ");
    for (size_t n = size; n-- > 0;) {
        CHECK(ftruncate(fd, (off_t)n) == 0);
        loaded += bj_model_load(&model, bad, &err) == BJ_OK;
        bj_model_free(model);
        if (n == size - 1) refused(BJ_EFORMAT, "tensor 'decoder.2.bias': data ends at byte ");
    }
    CHECK(loaded == 0);
    bj_free(file);
    CHECK(close(fd) == 0 && remove(bad) == 0);
    refused(BJ_EIO, "cannot open: No such file or directory");
}

static void test_refused_saves(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    const bj_arch arch = small_arch();
    CHECK_OK(bj_model_create(&model, &arch, SEED + 1, &err), err);
    if (!model) return;
    char *before, *after;
    size_t size, again;
    CHECK_OK(bj_file_read(&before, &size, good, 1 << 20, &err), err);

    bj_tensor t;
    CHECK_OK(bj_model_find(&t, model, "atoms.2.2.bias", &err), err);
    const bj_real kept = t.data[5];
    t.data[5] = (bj_real)INFINITY;
    CHECK(bj_model_save(model, good, NULL, 0, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "not saved: tensor 'atoms.2.2.bias': value 5 is inf");
    t.data[5] = kept;

    static const bj_fact taken[] = {{"latent", "6"}}, own[] = {{"sha256", ""}}, null[] = {{"k", 0}};
    CHECK(bj_model_save(model, good, taken, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "metadata 'latent' is given twice");
    CHECK(bj_model_save(model, good, own, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "metadata 'sha256' is given twice");
    CHECK(bj_model_save(model, good, null, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "has no key or no value");
    CHECK(bj_model_save(model, "/dev/full", NULL, 0, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "/dev/full: cannot write: No space left on device");
    CHECK(bj_model_save(model, "/nonexistent/m", NULL, 0, &err) == BJ_EIO);

    CHECK_OK(bj_file_read(&after, &again, good, 1 << 20, &err), err);
    CHECK(size == again && !memcmp(before, after, size));
    bj_free(before);
    bj_free(after);
    CHECK_OK(bj_model_save(model, bad, NULL, 0, &err), err); /* facts are optional */
    bj_model_free(model);
    CHECK_OK(bj_model_load(&model, bad, &err), err);
    bj_model_free(model);
}

static void test_allocation_failures(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    const bj_arch arch = small_arch();
    const long live = bj_alloc_live();
    CHECK_OK(bj_model_create(&model, &arch, SEED, &err), err);
    const long with_model = bj_alloc_live();
    int failures = 0;
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_model_save(model, bad, run_facts, RUN_FACTS, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == with_model);
        if (status == BJ_OK) break;
        failures++;
        CHECK_MSG(status == BJ_ENOMEM && err.code == status, "%s", err.message);
    }
    CHECK_MSG(failures > 10, "%d", failures);
    bj_model_free(model);
    failures = 0;
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_model_load(&model, bad, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        failures++;
        CHECK_MSG(status == BJ_ENOMEM && err.code == status, "%s", err.message);
        CHECK(model == NULL && bj_alloc_live() == live);
    }
    CHECK_MSG(failures > 10, "%d", failures);
    bj_model_free(model);
    CHECK(bj_alloc_live() == live);
}

static bj_status compare_with_small(const char *path, bj_error *err) {
    bj_model *model = NULL, *expected = NULL;
    const bj_arch arch = small_arch();
    bj_status status;
    BJ_GOTO(status, done, bj_model_create(&expected, &arch, SEED, err));
    BJ_GOTO(status, done, bj_model_load(&model, path, err));
    if (!same_model(model, expected))
        status = BJ_FAIL(err, BJ_EMISMATCH, "%s: not the model of this test", path);
done:
    bj_model_free(model);
    bj_model_free(expected);
    return status;
}

/* Tests that old files stay readable. Weights are compared with the file instead of a new model,
 * because the initial distribution may change without a change of the format. */
static void test_golden(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    const bj_arch arch = small_arch();
    CHECK_OK(bj_model_load(&model, "tests/golden/checkpoint_v1.safetensors", &err), err);
    if (!model) return;
    CHECK(same_arch(bj_model_arch(model), &arch));
    contents c;
    read_contents(&c, "tests/golden/checkpoint_v1.safetensors");
    CHECK(!strcmp(fact_of(&c, "sha256")->value, GOLDEN_DIGEST));
    for (int i = 0; i < c.count; i++) {
        bj_tensor t;
        const float *stored = c.tensors[i].data;
        CHECK_OK(bj_model_find(&t, model, c.tensors[i].name, &err), err);
        int wrong = 0;
        for (size_t j = 0; j < t.size; j++) wrong += t.data[j] != (bj_real)stored[j];
        CHECK(wrong == 0);
    }
    bj_safetensors_close(c.st);
    bj_model_free(model);
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc == 3 && (!strcmp(argv[1], "write") || !strcmp(argv[1], "read"))) {
        const int reading = argv[1][0] == 'r';
        if ((reading ? compare_with_small : save_small)(argv[2], &err) != BJ_OK) {
            printf("%s\n", err.message);
            return 1;
        }
        if (reading) puts("ok");
        return 0;
    }
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(good, sizeof good, "%s/good", folder);
    snprintf(bad, sizeof bad, "%s/bad", folder);
    const long live = bj_alloc_live();
    test_round_trips();
    test_metadata();
    test_weighting();
    test_numbers();
    test_other_precision();
    test_wrong_tensors();
    test_wrong_metadata();
    test_damaged_bytes();
    test_refused_saves();
    test_allocation_failures();
    test_golden();
    CHECK(bj_alloc_live() == live);
    CHECK(remove(good) == 0 && remove(bad) == 0 && rmdir(folder) == 0);
    return test_report("checkpoint");
}
