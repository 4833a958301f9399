/* campaign_json.c - campaign.json: the grid as it was resolved when the campaign was created.
 *
 *   {"schema": "branchjepa.campaign/1", "version": "...", "name": "...",
 *    "data": {"path": "/...", "digest": "64 digits"}, "dev": null or the same,
 *    "runs": [{"arm": "...", "name": "..." if it differs, "seed": 0, "needs": null or a run,
 *              "digest": "64 digits", "settings": {"optim.lr": 0.001, ...}}, ...]}
 *
 * With several datasets "data" is a list of [{"name": "...", "path": "/...", "digest": "..."},
 * ...], and a run has "data", the number of its own.
 *
 * Reading checks everything: settings are resolved again and must have the stored digest, and a run
 * may need only an earlier run. Unknown members are ignored, so later versions may add some.
 * Test: tests/campaign/test_campaign.c
 */
#include <stdio.h>
#include <string.h>

#include "campaign/campaign_arms.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/sha256.h"

enum { MOST_RUNS = BJ_CAMPAIGN_ARMS * BJ_CAMPAIGN_SEEDS, NUMBER = 40 };

static const char schema[] = "branchjepa.campaign/1";

/* -------------------------------------------------------------------------------------- writing */

/* Writes a number as JSON. The text of a number is already valid JSON. */
static yyjson_mut_val *setting_value(yyjson_mut_doc *doc, const bj_settings *s, int index) {
    char text[BJ_SETTING_TEXT_SIZE];
    double number;
    bj_setting_text(text, s, index);
    switch (bj_setting_at(index).type) {
    case BJ_SETTING_TEXT: return yyjson_mut_strcpy(doc, text);
    case BJ_SETTING_REAL:
        if (bj_json_number_read(&number, text)) return yyjson_mut_real(doc, number);
        break;
    case BJ_SETTING_INT:
    case BJ_SETTING_SEED: return yyjson_mut_rawcpy(doc, text);
    }
    return yyjson_mut_strcpy(doc, text);
}

static int add_settings(yyjson_mut_doc *doc, yyjson_mut_val *run, const bj_settings *s) {
    yyjson_mut_val *all = yyjson_mut_obj_add_obj(doc, run, "settings");
    int ok = all != NULL;
    for (int i = 0; ok && i < bj_setting_count(); i++)
        ok = yyjson_mut_obj_add(all, yyjson_mut_strcpy(doc, bj_setting_at(i).key),
                                setting_value(doc, s, i));
    return ok;
}

static int add_data(yyjson_mut_doc *doc, yyjson_mut_val *root, const char *key, const char *path,
                    const char *digest) {
    if (!path) return yyjson_mut_obj_add_null(doc, root, key);
    yyjson_mut_val *data = yyjson_mut_obj_add_obj(doc, root, key);
    return data && yyjson_mut_obj_add_str(doc, data, "path", path) &&
           yyjson_mut_obj_add_str(doc, data, "digest", digest);
}

static int add_sets(yyjson_mut_doc *doc, yyjson_mut_val *root, const bj_campaign *c) {
    if (!c->sets[0].name) return add_data(doc, root, "data", c->sets[0].path, c->sets[0].digest);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "data");
    int ok = list != NULL;
    for (int i = 0; ok && i < c->set_count; i++) {
        yyjson_mut_val *set = yyjson_mut_arr_add_obj(doc, list);
        ok = set && yyjson_mut_obj_add_str(doc, set, "name", c->sets[i].name) &&
             yyjson_mut_obj_add_str(doc, set, "path", c->sets[i].path) &&
             yyjson_mut_obj_add_str(doc, set, "digest", c->sets[i].digest);
    }
    return ok;
}

static int add_run(yyjson_mut_doc *doc, yyjson_mut_val *runs, const bj_grid_run *r, int several) {
    yyjson_mut_val *run = yyjson_mut_arr_add_obj(doc, runs);
    return run && (!several || yyjson_mut_obj_add_int(doc, run, "data", r->set)) &&
           yyjson_mut_obj_add_str(doc, run, "arm", r->settings.arm) &&
           (!r->label || yyjson_mut_obj_add_str(doc, run, "name", r->label)) &&
           yyjson_mut_obj_add_uint(doc, run, "seed", r->settings.seed) &&
           (r->needs < 0 ? yyjson_mut_obj_add_null(doc, run, "needs")
                         : yyjson_mut_obj_add_int(doc, run, "needs", r->needs)) &&
           yyjson_mut_obj_add_str(doc, run, "digest", r->digest) &&
           add_settings(doc, run, &r->settings);
}

bj_status bj_campaign_json_write(const bj_campaign *c, char **text, size_t *size, bj_error *err) {
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&bj_json_alc);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *runs;
    yyjson_mut_doc_set_root(doc, root);
    int ok = root && yyjson_mut_obj_add_str(doc, root, "schema", schema) &&
             yyjson_mut_obj_add_str(doc, root, "version", bj_version()) &&
             yyjson_mut_obj_add_str(doc, root, "name", c->name) && add_sets(doc, root, c) &&
             add_data(doc, root, "dev", c->dev, c->dev_digest) &&
             (runs = yyjson_mut_obj_add_arr(doc, root, "runs")) != NULL;
    for (int i = 0; ok && i < c->count; i++)
        ok = add_run(doc, runs, &c->runs[i], c->sets[0].name != NULL);
    yyjson_write_err problem = {0};
    *text = NULL;
    if (ok)
        *text =
            yyjson_mut_write_opts(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END,
                                  &bj_json_alc, size, &problem);
    yyjson_mut_doc_free(doc);
    if (*text) return BJ_OK;
    if (ok && problem.code == YYJSON_WRITE_ERROR_INVALID_STRING)
        return BJ_FAIL(err, BJ_EARG, "campaign '%s': a path is not UTF-8", c->name);
    return BJ_FAIL(err, BJ_ENOMEM, "campaign '%s': out of memory for the grid", c->name);
}

/* -------------------------------------------------------------------------------------- reading */

static bj_status wrong(const char *path, const char *what, const char *expected, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is missing or invalid, expected %s", path, what,
                   expected);
}

static bj_status read_text(char **out, yyjson_val *object, const char *key, const char *path,
                           bj_error *err) {
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    if (!text || !*text || strlen(text) != yyjson_get_len(yyjson_obj_get(object, key)))
        return wrong(path, key, "a text", err);
    return bj_campaign_text(out, text, err);
}

static bj_status read_digest(char hex[65], yyjson_val *object, const char *path, bj_error *err) {
    const char *text = yyjson_get_str(yyjson_obj_get(object, "digest"));
    if (!text || strlen(text) != 64 || text[strspn(text, "0123456789abcdef")])
        return wrong(path, "digest", "64 hexadecimal digits", err);
    memcpy(hex, text, 65);
    return BJ_OK;
}

static bj_status read_data(char **out, char digest[65], yyjson_val *data, const char *path,
                           bj_error *err) {
    BJ_TRY(read_text(out, data, "path", path, err));
    return read_digest(digest, data, path, err);
}

static bj_status read_sets(bj_campaign *c, yyjson_val *data, const char *path, bj_error *err) {
    const size_t count = yyjson_is_arr(data) ? yyjson_arr_size(data) : 1;
    if (!count || count > BJ_CAMPAIGN_SETS) return wrong(path, "data", "a list of datasets", err);
    BJ_TRY(BJ_ALLOC(c->sets, count, err));
    c->set_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        yyjson_val *item = yyjson_is_arr(data) ? yyjson_arr_get(data, i) : data;
        bj_grid_set *set = &c->sets[i];
        BJ_TRY(read_data(&set->path, set->digest, item, path, err));
        if (item == data) continue;
        BJ_TRY(read_text(&set->name, item, "name", path, err));
        if (!bj_campaign_is_set_name(set->name))
            return wrong(path, "name", "a short dataset name", err);
    }
    return BJ_OK;
}

/* Returns the raw text from which a setting's value is parsed. */
static int value_text(char text[NUMBER], const char **out, yyjson_val *value) {
    *out = text;
    if (yyjson_is_str(value)) return (*out = yyjson_get_str(value)) != NULL;
    if (yyjson_is_uint(value))
        return snprintf(text, NUMBER, "%llu", (unsigned long long)yyjson_get_uint(value)) > 0;
    if (yyjson_is_sint(value))
        return snprintf(text, NUMBER, "%lld", (long long)yyjson_get_sint(value)) > 0;
    return yyjson_is_real(value) && bj_json_number_write(text, yyjson_get_real(value));
}

static bj_status read_settings(bj_grid_run *run, yyjson_val *settings, const char *path,
                               bj_error *err) {
    bj_status status = BJ_OK;
    bj_assignment *list = NULL;
    char(*numbers)[NUMBER] = NULL, digest[65];
    size_t i, n = yyjson_obj_size(settings);
    yyjson_val *key, *value;
    BJ_TRY(BJ_ALLOC(list, n + 1, err));
    BJ_GOTO(status, done, BJ_ALLOC(numbers, n + 1, err));
    yyjson_obj_foreach(settings, i, n, key, value) {
        list[i] = (bj_assignment){yyjson_get_str(key), NULL, path};
        if (value_text(numbers[i], &list[i].value, value)) continue;
        status = wrong(path, list[i].key, "a string or a number", err);
        goto done;
    }
    BJ_GOTO(status, done, bj_settings_resolve(&run->settings, NULL, list, (int)n, err));
    BJ_GOTO(status, done, bj_settings_digest(digest, &run->settings, err));
    if (strcmp(digest, run->digest))
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s: run '%s' seed %llu: the digest of the settings is %.12s..., "
                         "expected %.12s...; the file was edited or written by another version",
                         path, run->settings.arm, (unsigned long long)run->settings.seed, digest,
                         run->digest);
done:
    bj_free(numbers);
    bj_free(list);
    return status;
}

static bj_status read_run(bj_campaign *c, int index, yyjson_val *item, const char *path,
                          bj_error *err) {
    bj_grid_run *run = &c->runs[index];
    yyjson_val *needs = yyjson_obj_get(item, "needs"), *settings = yyjson_obj_get(item, "settings");
    BJ_TRY(read_digest(run->digest, item, path, err));
    if (!yyjson_is_obj(settings) || yyjson_obj_size(settings) > 1000)
        return wrong(path, "settings", "an object", err);
    BJ_TRY(read_settings(run, settings, path, err));
    if (yyjson_obj_get(item, "name")) {
        BJ_TRY(read_text(&run->label, item, "name", path, err));
        if (!bj_campaign_is_arm_name(run->label)) return wrong(path, "name", "an arm name", err);
    }
    if (c->sets[0].name) {
        yyjson_val *set = yyjson_obj_get(item, "data");
        if (!yyjson_is_uint(set) || yyjson_get_uint(set) >= (uint64_t)c->set_count)
            return wrong(path, "data", "a dataset number for every run", err);
        run->set = (int)yyjson_get_uint(set);
    }
    run->needs = -1;
    if (yyjson_is_uint(needs) && yyjson_get_uint(needs) < (uint64_t)c->count)
        run->needs = (int)yyjson_get_uint(needs);
    else if (!yyjson_is_null(needs)) return wrong(path, "needs", "null or a run number", err);
    return bj_campaign_name_run(c, index, err);
}

static bj_status check_needs(const bj_campaign *c, const char *path, bj_error *err) {
    for (int i = 0; i < c->count; i++) {
        const bj_grid_run *run = &c->runs[i];
        const int stage_b = bj_campaign_is_stage_b(run->settings.arm);
        const bj_grid_run *needed = run->needs >= 0 ? &c->runs[run->needs] : NULL;
        if (stage_b != (needed != NULL) ||
            (needed && (bj_campaign_is_stage_b(needed->settings.arm) ||
                        needed->settings.seed != run->settings.seed || needed->set != run->set)))
            return wrong(path, "needs",
                         "the stage A run with the same seed and data, for a stage B run", err);
        for (int j = 0; j < i; j++)
            if (!strcmp(c->runs[j].dir, run->dir))
                return BJ_FAIL(err, BJ_EFORMAT, "%s: run '%s' seed %llu occurs twice", path,
                               run->name, (unsigned long long)run->settings.seed);
    }
    return BJ_OK;
}

static bj_status read_root(bj_campaign *c, yyjson_val *root, const char *path, bj_error *err) {
    const char *found = yyjson_get_str(yyjson_obj_get(root, "schema"));
    yyjson_val *dev = yyjson_obj_get(root, "dev"), *runs = yyjson_obj_get(root, "runs"), *item;
    size_t i, n;
    if (!found || strcmp(found, schema))
        return BJ_FAIL(err, found ? BJ_EVERSION : BJ_EFORMAT,
                       "%s: schema is '%.60s', expected '%s'", path, found ? found : "missing",
                       schema);
    BJ_TRY(read_text(&c->name, root, "name", path, err));
    BJ_TRY(read_sets(c, yyjson_obj_get(root, "data"), path, err));
    if (dev && !yyjson_is_null(dev)) BJ_TRY(read_data(&c->dev, c->dev_digest, dev, path, err));
    if (!yyjson_arr_size(runs) || yyjson_arr_size(runs) > MOST_RUNS)
        return wrong(path, "runs", "a list of runs", err);
    BJ_TRY(BJ_ALLOC(c->runs, yyjson_arr_size(runs), err));
    c->count = (int)yyjson_arr_size(runs);
    yyjson_arr_foreach(runs, i, n, item) BJ_TRY(read_run(c, (int)i, item, path, err));
    return check_needs(c, path, err);
}

bj_status bj_campaign_json_read(bj_campaign *c, const char *path, bj_error *err) {
    bj_status status;
    char *text = NULL;
    size_t size;
    yyjson_doc *doc = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, BJ_CAMPAIGN_FILE, err));
    bj_sha256_memory(c->digest, text, size);
    BJ_GOTO(status, done, bj_json_parse(&doc, text, size, path, err));
    status = read_root(c, yyjson_doc_get_root(doc), path, err);
done:
    yyjson_doc_free(doc);
    bj_free(text);
    return status;
}

/* ------------------------------------------------------------------------------------ comparing */

static bj_status same_run(const bj_campaign *was, const bj_campaign *is, int run, const char *file,
                          bj_error *err) {
    const bj_settings *a = &was->runs[run].settings, *b = &is->runs[run].settings;
    char x[BJ_SETTING_TEXT_SIZE], y[BJ_SETTING_TEXT_SIZE];
    if (strcmp(was->runs[run].name, is->runs[run].name))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: run %d was created as '%s', but according to %s it is now '%s'",
                       was->dir, run, was->runs[run].name, file, is->runs[run].name);
    for (int i = 0; i < bj_setting_count(); i++) {
        bj_setting_text(x, a, i);
        bj_setting_text(y, b, i);
        if (strcmp(x, y))
            return BJ_FAIL(
                err, BJ_EMISMATCH,
                "%s: run %d ('%s' seed %llu) was created with %s = %.120s, but %s now has %.120s",
                was->dir, run, was->runs[run].name, (unsigned long long)a->seed,
                bj_setting_at(i).key, x, file, y);
    }
    return BJ_OK;
}

bj_status bj_campaign_same(const bj_campaign *was, const bj_campaign *is, const char *file,
                           bj_error *err) {
    if (strcmp(was->name, is->name))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: contains the campaign '%s', but the campaign in %s is '%s'", was->dir,
                       was->name, file, is->name);
    if (was->set_count != is->set_count)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the campaign was created with %d datasets, but %s lists %d", was->dir,
                       was->set_count, file, is->set_count);
    for (int i = 0; i < was->set_count; i++) {
        const bj_grid_set *a = &was->sets[i], *b = &is->sets[i];
        const char *x = a->name ? a->name : "(no name)", *y = b->name ? b->name : "(no name)";
        if (strcmp(x, y))
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: the campaign was created with the dataset '%s', but %s lists '%s'",
                           was->dir, x, file, y);
        if (strcmp(a->digest, b->digest))
            return BJ_FAIL(
                err, BJ_EMISMATCH,
                "%s: the campaign was created with data that has the digest %.12s... (%s), "
                "but %s has %.12s...",
                was->dir, a->digest, a->path, b->path, b->digest);
    }
    if (!was->dev != !is->dev || strcmp(was->dev_digest, is->dev_digest))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the campaign was created with the development data %s %.12s, "
                       "but now has %s %.12s",
                       was->dir, was->dev ? was->dev : "(none)", was->dev_digest,
                       is->dev ? is->dev : "(none)", is->dev_digest);
    for (int i = 0; i < was->count && i < is->count; i++) BJ_TRY(same_run(was, is, i, file, err));
    if (was->count != is->count)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the campaign was created with %d runs, but %s describes %d", was->dir,
                       was->count, file, is->count);
    return BJ_OK;
}
