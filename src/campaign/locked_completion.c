/* locked_completion.c - see locked_completion.h. */
#define _POSIX_C_SOURCE 200809L /* gmtime_r */
#include "campaign/locked_completion.h"

#include <string.h>
#include <time.h>

static const char *const schemas[] = {"branchjepa.completion/1", "branchjepa.completion/2"};

const char *const bj_completion_files[BJ_DONE_FILES] = {
    [BJ_DONE_SUMMARY] = BJ_LOCKED_SUMMARY, [BJ_DONE_SEEDS] = BJ_LOCKED_SEEDS,
    [BJ_DONE_LOCK] = BJ_LOCK_FILE,         [BJ_DONE_EVALUATOR] = "evaluator",
    [BJ_DONE_DATA] = "data",
};

void bj_completion_time(char out[24], double seconds) {
    const time_t whole = (time_t)seconds;
    struct tm utc;
    *out = '\0';
    if (gmtime_r(&whole, &utc)) strftime(out, 24, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* ------------------------------------------------------------------------------------- writing */

static bj_status text_with(bj_locked_text *out, const bj_completion *c, const char *digest,
                           bj_error *err) {
    bj_doc doc;
    BJ_TRY(bj_doc_begin(&doc, schemas[c->schema - 1], err));
    yyjson_mut_val *const root = doc.root;
    bj_doc_add_text(&doc, root, "campaign", c->campaign);
    yyjson_mut_val *files = bj_doc_child(&doc, root, "sha256");
    for (int i = 0; i < BJ_DONE_FILES; i++)
        bj_doc_add_text(&doc, files, bj_completion_files[i], c->sha256[i]);
    bj_doc_add_text(&doc, root, "version", c->version);
    bj_doc_add_integer(&doc, root, "scenes", c->scenes);
    bj_doc_add_integer(&doc, root, "checkpoints", c->checkpoints);
    bj_doc_add_text(&doc, root, "isa", c->isa);
    bj_doc_add_text(&doc, root, "real", c->real);
    bj_doc_add_integer(&doc, root, "threads", c->threads);
    bj_doc_add_text(&doc, root, "started", c->started);
    bj_doc_add_text(&doc, root, "finished", c->finished);
    if (digest) bj_doc_add_text(&doc, root, "digest", digest);
    return bj_locked_text_of(out, &doc, BJ_LOCKED_COMPLETION, err);
}

bj_status bj_completion_text(bj_locked_text *out, const bj_completion *c, bj_error *err) {
    bj_locked_text body;
    BJ_TRY(text_with(&body, c, NULL, err));
    if (c->schema == 1) {
        *out = body;
        return BJ_OK;
    }
    const bj_status status = text_with(out, c, body.sha256, err);
    bj_locked_text_reset(&body);
    return status;
}

/* ------------------------------------------------------------------------------------- reading */

static bj_status read_all(bj_completion *c, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *files;
    BJ_TRY(bj_locked_get_text(c->campaign, sizeof c->campaign, root, "campaign", path, err));
    BJ_TRY(bj_locked_get_object(&files, root, "sha256", path, err));
    for (int i = 0; i < BJ_DONE_FILES; i++)
        BJ_TRY(bj_locked_get_sha256(c->sha256[i], files, bj_completion_files[i], path, err));
    BJ_TRY(bj_locked_get_text(c->version, sizeof c->version, root, "version", path, err));
    BJ_TRY(bj_locked_get_integer(&c->scenes, root, "scenes", path, err));
    BJ_TRY(bj_locked_get_integer(&c->checkpoints, root, "checkpoints", path, err));
    BJ_TRY(bj_locked_get_text(c->isa, sizeof c->isa, root, "isa", path, err));
    BJ_TRY(bj_locked_get_text(c->real, sizeof c->real, root, "real", path, err));
    BJ_TRY(bj_locked_get_integer(&c->threads, root, "threads", path, err));
    BJ_TRY(bj_locked_get_text(c->started, sizeof c->started, root, "started", path, err));
    BJ_TRY(bj_locked_get_text(c->finished, sizeof c->finished, root, "finished", path, err));
    return BJ_OK;
}

/* Checks that a text is a time as bj_completion_time writes it. */
static int is_time(const char *text) {
    static const char pattern[] = "0000-00-00T00:00:00Z";
    if (strlen(text) != sizeof pattern - 1) return 0;
    for (size_t i = 0; i < sizeof pattern - 1; i++)
        if (pattern[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i]) return 0;
    return 1;
}

bj_status bj_completion_parse(bj_completion *c, const bj_locked_text *text, const char *path,
                              bj_error *err) {
    yyjson_doc *doc = NULL;
    bj_locked_text again = {0};
    *c = (bj_completion){.schema = 2};
    bj_status status = bj_locked_parse(&doc, text, path, schemas[1], err);
    if (status == BJ_EVERSION && bj_locked_parse(&doc, text, path, schemas[0], NULL) == BJ_OK) {
        c->schema = 1; /* written by an older version */
        status = BJ_OK;
    }
    BJ_TRY(status);
    status = read_all(c, yyjson_doc_get_root(doc), path, err);
    yyjson_doc_free(doc);
    BJ_TRY(status);
    if (!is_time(c->started) || !is_time(c->finished) || strcmp(c->started, c->finished) > 0)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: started is '%s' and finished '%s', expected two times in order", path,
                       c->started, c->finished);
    BJ_TRY(bj_completion_text(&again, c, err));
    status = bj_locked_same_text(text, &again, path, err);
    bj_locked_text_reset(&again);
    return status;
}
