/* campaign.c - creates a campaign in its folder, and opens one.
 *
 *   1. campaign.json is written last, by rename, and never changes, so a folder that has it is
 *      complete.
 *   2. The process that creates the campaign locks the folder, so shards may start at the same
 *      time.
 *   3. A campaign that is created again must have the same name, data content and settings of every
 *      run. The path of the data may differ.
 * Test: tests/campaign/test_campaign.c
 */
#define _XOPEN_SOURCE 700 /* realpath, mkdir */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/campaign_internal.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/folder.h"
#include "core/file_internal.h"
#include "core/sha256.h"

static const char json_name[] = "campaign.json", yaml_name[] = "campaign.yaml";

/* ---------------------------------------------------------------------------------------- paths */

bj_status bj_campaign_path(char path[BJ_CAMPAIGN_PATH], const char *folder, const char *name,
                           bj_error *err) {
    if (snprintf(path, BJ_CAMPAIGN_PATH, "%s/%s", folder, name) >= BJ_CAMPAIGN_PATH)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", folder);
    return BJ_OK;
}

bj_status bj_campaign_text(char **out, const char *text, bj_error *err) {
    char *copy;
    const size_t size = strlen(text) + 1;
    BJ_TRY(BJ_ALLOC(copy, size, err));
    memcpy(copy, text, size);
    bj_free(*out);
    *out = copy;
    return BJ_OK;
}

int bj_campaign_is_set_name(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const size_t length = strlen(name);
    return length && length < BJ_SET_NAME && !name[strspn(name, letters)] &&
           name[strspn(name, "0123456789")]; /* the keys of a list are numbers */
}

const char *bj_campaign_label(const bj_campaign *c, int run) {
    return c->runs[run].label ? c->runs[run].label : c->runs[run].settings.arm;
}

bj_status bj_campaign_name_run(bj_campaign *c, int index, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH], name[BJ_SET_NAME + BJ_NAME_SIZE];
    bj_grid_run *run = &c->runs[index];
    const char *set = c->sets[run->set].name;
    snprintf(name, sizeof name, "%s%s%s", set ? set : "", set ? "/" : "",
             bj_campaign_label(c, index));
    BJ_TRY(bj_campaign_text(&run->name, name, err));
    if (snprintf(path, sizeof path, "%s/runs/%s/seed-%llu", c->dir, name,
                 (unsigned long long)run->settings.seed) >= (int)sizeof path)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", c->dir);
    return bj_campaign_text(&run->dir, path, err);
}

/* Returns the absolute path with symbolic links resolved. The last path component need not exist.
 * */
static bj_status find_root(bj_campaign *c, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH], full[PATH_MAX], joined[PATH_MAX + 256];
    if (realpath(c->dir, full)) return bj_campaign_text(&c->root, full, err);
    if (snprintf(path, sizeof path, "%s", c->dir) >= (int)sizeof path)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", c->dir);
    char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : c->dir;
    if (slash) *slash = '\0';
    const char *parent = !slash ? "." : *path ? path : "/";
    if (!realpath(parent, full)) return bj_campaign_text(&c->root, c->dir, err); /* only a look */
    if (snprintf(joined, sizeof joined, "%s/%s", full, last) >= (int)sizeof joined)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: path too long", c->dir);
    return bj_campaign_text(&c->root, joined, err);
}

static bj_status begin(bj_campaign **out, const char *dir, bj_error *err) {
    size_t length = dir ? strlen(dir) : 0;
    if (!length) return BJ_FAIL(err, BJ_EARG, "the campaign folder has no name");
    BJ_TRY(BJ_ALLOC(*out, 1, err));
    BJ_TRY(bj_campaign_text(&(*out)->dir, dir, err));
    while (length > 1 && dir[length - 1] == '/') (*out)->dir[--length] = '\0';
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- data */

/* Computes the digest of the data, which can be a cache, the file of a maze dataset or the
 * specification of fresh scenes. */
static bj_status digest_of(char digest[65], const char *path, bj_error *err) {
    bj_cache *cache = NULL;
    bj_fresh_spec spec;
    const size_t size = strlen(path);
    if (bj_fresh_is_spec(path)) {
        BJ_TRY(bj_fresh_parse(&spec, path, err));
        return bj_fresh_digest(digest, &spec, err);
    }
    if (size > 4 && !strcmp(path + size - 4, ".npz")) return bj_sha256_file(digest, path, err);
    BJ_TRY(bj_cache_open(&cache, path, 1, err));
    memcpy(digest, bj_cache_digest(cache), 65);
    bj_cache_free(cache);
    return BJ_OK;
}

static bj_status look_at(char **path, char digest[65], bj_error *err) {
    char full[PATH_MAX];
    if (bj_fresh_is_spec(*path)) return digest_of(digest, *path, err);
    if (!realpath(*path, full)) return bj_file_fail(err, errno, *path, "open");
    BJ_TRY(digest_of(digest, full, err));
    return bj_campaign_text(path, full, err);
}

static bj_status check_digest(const bj_campaign *c, const char *path, const char *expected,
                              bj_error *err) {
    char digest[65];
    BJ_TRY(digest_of(digest, path, err));
    if (!strcmp(digest, expected)) return BJ_OK;
    return BJ_FAIL(err, BJ_EMISMATCH,
                   "%s: its digest is %.12s..., but the campaign in %s was created with %.12s...",
                   path, digest, c->dir, expected);
}

bj_status bj_campaign_check_data(const bj_campaign *c, bj_error *err) {
    for (int i = 0; i < c->set_count; i++)
        BJ_TRY(check_digest(c, c->sets[i].path, c->sets[i].digest, err));
    return c->dev ? check_digest(c, c->dev, c->dev_digest, err) : BJ_OK;
}

/* Returns 1 if the two campaigns have the same dataset names. */
static int same_sets(const bj_campaign *a, const bj_campaign *b) {
    int same = a->set_count == b->set_count;
    for (int i = 0; same && i < a->set_count; i++)
        same = !a->sets[i].name == !b->sets[i].name &&
               (!a->sets[i].name || !strcmp(a->sets[i].name, b->sets[i].name));
    return same;
}

/* Fills in missing data paths from the existing campaign. If the campaign file names several
 * datasets, `given` is the folder that contains them. */
static bj_status find_data(bj_campaign *c, const bj_campaign *was, const char *file,
                           const char *given, bj_error *err) {
    const int known = was && same_sets(c, was);
    for (int i = 0; i < c->set_count; i++) {
        bj_grid_set *set = &c->sets[i];
        if (known && (!set->path || (set->name && !given)))
            BJ_TRY(bj_campaign_text(&set->path, was->sets[i].path, err));
        if (!set->path)
            return BJ_FAIL(err, BJ_EARG, "%s: 'data' is missing, and --data is not given", file);
        BJ_TRY(look_at(&set->path, set->digest, err));
    }
    if (!c->dev && was && was->dev) BJ_TRY(bj_campaign_text(&c->dev, was->dev, err));
    return c->dev ? look_at(&c->dev, c->dev_digest, err) : BJ_OK;
}

/* --------------------------------------------------------------------------------------- folder */

/* Opens the campaign in a folder. Sets *out to NULL if the folder contains no campaign. */
static bj_status open_existing(bj_campaign **out, const char *dir, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH];
    *out = NULL;
    BJ_TRY(bj_campaign_path(path, dir, json_name, err));
    if (!bj_file_exists(path)) return BJ_OK;
    return bj_campaign_open(out, dir, err);
}

/* Fails if a file with that name but different content exists. */
static bj_status check_free(const char *path, const char *text, size_t size, bj_error *err) {
    char *old = NULL;
    size_t old_size;
    if (!bj_file_exists(path)) return BJ_OK;
    BJ_TRY(bj_file_read(&old, &old_size, path, BJ_CAMPAIGN_FILE, err));
    const int same = old_size == size && !memcmp(old, text, size);
    bj_free(old);
    if (same) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG,
                   "%s: the file exists, but there is no %s next to it; expected a new folder",
                   path, json_name);
}

static bj_status lay_down(bj_campaign *c, const char *file, bj_error *err) {
    bj_status status;
    char yaml_path[BJ_CAMPAIGN_PATH], json_path[BJ_CAMPAIGN_PATH];
    char *yaml = NULL, *json = NULL;
    size_t yaml_size, json_size;
    bj_file_writer *writers[2] = {NULL, NULL};
    BJ_TRY(bj_campaign_path(yaml_path, c->dir, yaml_name, err));
    BJ_TRY(bj_campaign_path(json_path, c->dir, json_name, err));
    BJ_GOTO(status, done, bj_file_read(&yaml, &yaml_size, file, BJ_CAMPAIGN_FILE, err));
    BJ_GOTO(status, done, check_free(yaml_path, yaml, yaml_size, err));
    BJ_GOTO(status, done, bj_campaign_json_write(c, &json, &json_size, err));
    bj_sha256_memory(c->digest, json, json_size);
    BJ_GOTO(status, done, bj_file_writer_open(&writers[0], yaml_path, err));
    BJ_GOTO(status, done, bj_file_writer_open(&writers[1], json_path, err));
    BJ_GOTO(status, done, bj_file_writer_write(writers[0], yaml, yaml_size, err));
    BJ_GOTO(status, done, bj_file_writer_write(writers[1], json, json_size, err));
    status = bj_file_writer_commit_all(writers, 2, err);
done:
    bj_file_writer_abort(&writers[0]);
    bj_file_writer_abort(&writers[1]);
    bj_free(yaml);
    bj_free(json);
    return status;
}

static bj_status create(bj_campaign *c, const char *file, const bj_campaign_options *options,
                        bj_error *err) {
    bj_status status;
    bj_campaign *was = NULL;
    BJ_TRY(find_root(c, err));
    BJ_TRY(bj_campaign_file_read(c, file, options, err));
    BJ_TRY(open_existing(&was, c->dir, err));
    BJ_GOTO(status, done, find_data(c, was, file, options->data, err));
    if (was) {
        memcpy(c->digest, was->digest, sizeof c->digest);
        status = bj_campaign_same(was, c, file, err);
    } else if (!options->look) {
        status = lay_down(c, file, err);
    }
done:
    bj_campaign_free(was);
    return status;
}

bj_status bj_campaign_create(bj_campaign **out, const char *file, const char *dir,
                             const bj_campaign_options *options, bj_error *err) {
    static const bj_campaign_options none;
    bj_status status;
    bj_campaign *c = NULL;
    int lock = -1, fresh = 0;
    *out = NULL;
    if (!options) options = &none;
    BJ_GOTO(status, done, begin(&c, dir, err));
    if (!options->look) {
        fresh = access(c->dir, F_OK) != 0;
        BJ_GOTO(status, done, bj_folders_make(c->dir, err));
        BJ_GOTO(status, done, bj_campaign_turn(&lock, c->dir, err));
    }
    status = create(c, file, options, err);
done:
    if (status != BJ_OK && fresh) rmdir(c->dir); /* does nothing if the folder is not empty */
    bj_campaign_turn_end(lock);
    if (status == BJ_OK) *out = c;
    else bj_campaign_free(c);
    return status;
}

bj_status bj_campaign_open(bj_campaign **out, const char *dir, bj_error *err) {
    bj_status status;
    char path[BJ_CAMPAIGN_PATH];
    bj_campaign *c = NULL;
    *out = NULL;
    BJ_GOTO(status, done, begin(&c, dir, err));
    BJ_GOTO(status, done, bj_campaign_path(path, c->dir, json_name, err));
    BJ_GOTO(status, done, find_root(c, err));
    status = bj_campaign_json_read(c, path, err);
done:
    if (status == BJ_OK) *out = c;
    else bj_campaign_free(c);
    return status;
}

void bj_campaign_free(bj_campaign *c) {
    if (!c) return;
    for (int i = 0; i < c->count; i++) {
        bj_free(c->runs[i].label);
        bj_free(c->runs[i].name);
        bj_free(c->runs[i].dir);
    }
    for (int i = 0; i < c->set_count; i++) {
        bj_free(c->sets[i].name);
        bj_free(c->sets[i].path);
    }
    bj_free(c->runs);
    bj_free(c->sets);
    bj_free(c->dir);
    bj_free(c->root);
    bj_free(c->name);
    bj_free(c->dev);
    bj_free(c);
}

/* -------------------------------------------------------------------------------------- queries */

const char *bj_campaign_name(const bj_campaign *c) { return c->name; }
const char *bj_campaign_dir(const bj_campaign *c) { return c->dir; }
int bj_campaign_data_count(const bj_campaign *c) { return c->set_count; }
const char *bj_campaign_data_name(const bj_campaign *c, int set) { return c->sets[set].name; }
const char *bj_campaign_data(const bj_campaign *c) { return c->sets[0].path; }
const char *bj_campaign_data_digest(const bj_campaign *c) { return c->sets[0].digest; }
const char *bj_campaign_dev(const bj_campaign *c) { return c->dev; }
int bj_campaign_runs(const bj_campaign *c) { return c->count; }

bj_campaign_run bj_campaign_run_at(const bj_campaign *c, int index) {
    const bj_grid_run *run = &c->runs[index];
    const bj_grid_set *set = &c->sets[run->set];
    return (bj_campaign_run){.settings = &run->settings,
                             .name = run->name,
                             .set = run->set,
                             .data = set->path,
                             .data_digest = set->digest,
                             .dir = run->dir,
                             .needs = run->needs};
}
