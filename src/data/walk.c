/* walk.c - see walk.h. Directory streams are allocated by the C library. */
#define _XOPEN_SOURCE 700 /* openat, fdopendir, fstatat, realpath */
#include "data/walk.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file_internal.h"

enum { CHUNK = 1 << 18 };

/* A scenario, described by its id and the index of its parent folder. 250,000 scenarios take about
 * 15 MB. */
typedef struct found {
    const char *id;
    int32_t parent;  /* index into `parents` */
    int32_t in_file; /* 0: the scenario is in a folder of that name in the parent; 1: it is in the
                        parent itself */
    int64_t order;   /* order of discovery */
} found;

typedef struct chunk {
    struct chunk *before;
    size_t used;
    char text[CHUNK];
} chunk;

struct bj_walk {
    found *items;
    int64_t count, room;
    const char **parents; /* paths */
    int32_t parent_count, parent_room;
    chunk *names; /* storage for ids and paths */
    const char *split;
};

/* A folder on the path from a root to the current folder. */
typedef struct level {
    const struct level *above;
    dev_t device;
    ino_t inode;
    int depth;         /* 0 for a root */
    const char *split; /* the last split name on the path, or NULL */
    char path[BJ_WALK_PATH];
} level;

/* ----------------------------------------------------------------------------------------- names
 */

static int is_uuid(const char *name) {
    for (int i = 0; i < 36; i++) {
        const int dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? name[i] != '-' : !isxdigit((unsigned char)name[i])) return 0;
    }
    return name[36] == '\0';
}

static const char *split_name(const char *name, size_t length) {
    static const char *const names[] = {"train", "val", "test"};
    for (int i = 0; i < 3; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length)) return names[i];
    return NULL;
}

/* Returns the last split name among the components of a path, or NULL. */
static const char *split_of_path(const char *path) {
    const char *last = NULL;
    for (const char *part = path; *part;) {
        const size_t length = strcspn(part, "/");
        const char *name = split_name(part, length);
        if (name) last = name;
        part += length;
        part += strspn(part, "/");
    }
    return last;
}

/* Returns the length of ID in scenario_ID.parquet, or 0 if the name does not have this form. */
static size_t id_length(const char *name) {
    static const char head[] = "scenario_", tail[] = ".parquet";
    const size_t length = strlen(name), around = sizeof head - 1 + sizeof tail - 1;
    if (length <= around || strncmp(name, head, sizeof head - 1) ||
        strcmp(name + length - (sizeof tail - 1), tail))
        return 0;
    return length - around;
}

/* --------------------------------------------------------------------------------------- storing
 */

static bj_status keep_text(const char **out, bj_walk *walk, const char *text, size_t length,
                           bj_error *err) {
    if (!walk->names || walk->names->used + length + 1 > CHUNK) {
        chunk *next;
        BJ_TRY(BJ_ALLOC(next, 1, err));
        next->before = walk->names;
        walk->names = next;
    }
    char *copy = walk->names->text + walk->names->used;
    memcpy(copy, text, length);
    copy[length] = '\0';
    walk->names->used += length + 1;
    *out = copy;
    return BJ_OK;
}

static bj_status keep_parent(bj_walk *walk, const char *path, bj_error *err) {
    if (walk->parent_count == walk->parent_room) {
        const char **larger;
        if (walk->parent_room > INT32_MAX / 2)
            return BJ_FAIL(err, BJ_ENOMEM, "%s: too many folders", path);
        const int32_t room = walk->parent_room ? 2 * walk->parent_room : 64;
        BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
        if (walk->parents)
            memcpy(larger, walk->parents, (size_t)walk->parent_count * sizeof *larger);
        bj_free(walk->parents);
        walk->parents = larger;
        walk->parent_room = room;
    }
    BJ_TRY(keep_text(&walk->parents[walk->parent_count], walk, path, strlen(path), err));
    walk->parent_count++;
    return BJ_OK;
}

/* Adds a scenario in or below the folder `at`. *parent is the index of `at` in `parents`, or -1
 * until the first scenario is added. */
static bj_status keep(bj_walk *walk, int32_t *parent, const level *at, const char *id,
                      size_t length, int in_file, bj_error *err) {
    if (walk->count == walk->room) {
        found *larger;
        const int64_t room = walk->room ? 2 * walk->room : 1024;
        BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
        if (walk->items) memcpy(larger, walk->items, (size_t)walk->count * sizeof *larger);
        bj_free(walk->items);
        walk->items = larger;
        walk->room = room;
    }
    if (*parent < 0) {
        BJ_TRY(keep_parent(walk, at->path, err));
        *parent = walk->parent_count - 1;
    }
    found *item = &walk->items[walk->count];
    *item = (found){NULL, *parent, in_file, walk->count};
    BJ_TRY(keep_text(&item->id, walk, id, length, err));
    walk->count++;
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- walking
 */

static int wanted(const bj_walk *walk, const char *split) {
    return !walk->split || (split && !strcmp(split, walk->split));
}

static int lies_above(const level *at, const struct stat *info) {
    for (; at; at = at->above)
        if (at->device == info->st_dev && at->inode == info->st_ino) return 1;
    return 0;
}

static bj_status enter(bj_walk *walk, level *at, bj_error *err);

/* Skips entries that were just removed, dangling links, and links to files without read permission.
 * Other errors are failures, because a scenario would be missing. */
static bj_status fail_entry(const level *at, const char *name, bj_error *err) {
    const int number = errno;
    if (number == ENOENT || number == ENOTDIR || number == ELOOP || number == EACCES) return BJ_OK;
    char path[BJ_WALK_PATH + 64];
    snprintf(path, sizeof path, "%s/%.60s", at->path, name);
    return bj_file_fail(err, number, path, "examine");
}

/* Handles one entry of the folder `at`. */
static bj_status look_at(bj_walk *walk, int32_t *parent, const level *at, int folder,
                         const char *name, bj_error *err) {
    struct stat info;
    if (name[0] == '.') return BJ_OK;
    const size_t id = id_length(name);
    if (id) return wanted(walk, at->split) ? keep(walk, parent, at, name + 9, id, 1, err) : BJ_OK;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW)) return fail_entry(at, name, err);
    if (S_ISLNK(info.st_mode)) {
        if (at->depth >= BJ_WALK_LINKS) return BJ_OK;
        if (fstatat(folder, name, &info, 0)) return fail_entry(at, name, err);
    }
    if (!S_ISDIR(info.st_mode) || lies_above(at, &info)) return BJ_OK;
    if (is_uuid(name))
        return wanted(walk, at->split) ? keep(walk, parent, at, name, strlen(name), 0, err) : BJ_OK;
    if (at->depth >= BJ_WALK_DEPTH) return BJ_OK;

    level *below;
    BJ_TRY(BJ_ALLOC(below, 1, err));
    const char *split = split_name(name, strlen(name));
    below->above = at;
    below->depth = at->depth + 1;
    below->device = info.st_dev;
    below->inode = info.st_ino;
    below->split = split ? split : at->split;
    bj_status status = BJ_OK;
    const int slash = *at->path && at->path[strlen(at->path) - 1] == '/';
    if (snprintf(below->path, sizeof below->path, "%s%s%s", at->path, slash ? "" : "/", name) >=
        (int)sizeof below->path)
        status = bj_file_fail(err, ENAMETOOLONG, at->path, "enter a folder in it");
    else status = enter(walk, below, err);
    bj_free(below);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the names in a folder in sorted order, because the order of readdir is unspecified. The
 * names are stored after the pointer table in one memory block. */
static bj_status list(const char ***out, size_t *count, DIR *dir, const char *path, bj_error *err) {
    size_t bytes = 0, n = 0, used = 0, kept = 0;
    errno = 0;
    for (const struct dirent *e; (e = readdir(dir)); n++) bytes += strlen(e->d_name) + 1;
    if (errno) return bj_file_fail(err, errno, path, "list the folder");
    /* Files that are created between the two passes may be missed. */
    char *memory;
    BJ_TRY(BJ_ALLOC(memory, n * sizeof(char *) + bytes, err));
    const char **names = (const char **)(void *)memory;
    char *text = memory + n * sizeof(char *);
    rewinddir(dir);
    errno = 0;
    for (const struct dirent *e; kept < n && (e = readdir(dir));) {
        const size_t size = strlen(e->d_name) + 1;
        if (used + size > bytes) break;
        names[kept++] = memcpy(text + used, e->d_name, size);
        used += size;
    }
    if (errno) {
        const bj_status failed = bj_file_fail(err, errno, path, "list the folder");
        bj_free(memory);
        return failed;
    }
    if (kept) qsort(names, kept, sizeof *names, compare_names);
    *out = names;
    *count = kept;
    return BJ_OK;
}

static bj_status enter(bj_walk *walk, level *at, bj_error *err) {
    const char **names = NULL;
    size_t count = 0;
    int32_t parent = -1;
    const int fd = bj_file_open(at->path, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        const bj_status failed = bj_file_fail(err, errno, at->path, "open the folder");
        if (fd >= 0) close(fd);
        return failed;
    }
    bj_status status = list(&names, &count, dir, at->path, err);
    for (size_t i = 0; i < count && status == BJ_OK; i++)
        status = look_at(walk, &parent, at, dirfd(dir), names[i], err);
    bj_free(names);
    closedir(dir);
    return status;
}

static bj_status walk_root(bj_walk *walk, const char *root, bj_error *err) {
    level *at;
    struct stat info;
    char *whole = NULL;
    bj_status status = BJ_OK;
    BJ_TRY(BJ_ALLOC(at, 1, err));
    if (strlen(root) >= sizeof at->path) {
        status = bj_file_fail(err, ENAMETOOLONG, root, "enter");
    } else if (stat(root, &info)) {
        status = bj_file_fail(err, errno, root, "open");
    } else if (!S_ISDIR(info.st_mode)) {
        status = bj_file_fail(err, ENOTDIR, root, "walk");
    } else if (!(whole = realpath(root, NULL))) {
        status = bj_file_fail(err, errno, root, "resolve");
    } else {
        const char *base = strrchr(whole, '/') + 1;
        int32_t parent = -1;
        at->device = info.st_dev;
        at->inode = info.st_ino;
        at->split = split_of_path(whole);
        if (!is_uuid(base)) {
            memcpy(at->path, root, strlen(root) + 1);
            status = enter(walk, at, err);
        } else if (wanted(walk, at->split)) {
            memcpy(at->path, whole, base == whole + 1 ? 1 : (size_t)(base - whole) - 1);
            status = keep(walk, &parent, at, base, strlen(base), 0, err);
        }
    }
    free(whole);
    bj_free(at);
    return status;
}

/* ------------------------------------------------------------------------------------- interface
 */

static int compare_found(const void *a, const void *b) {
    const found *x = a, *y = b;
    const int by_id = strcmp(x->id, y->id);
    return by_id ? by_id : x->order < y->order ? -1 : x->order > y->order;
}

bj_status bj_walk_create(bj_walk **out, const char *const *roots, int count, const char *split,
                         bj_error *err) {
    bj_walk *walk;
    bj_status status = BJ_OK;
    *out = NULL;
    if (split && !split_name(split, strlen(split)))
        return BJ_FAIL(err, BJ_EARG, "split is '%s', expected train, val or test", split);
    BJ_TRY(BJ_ALLOC(walk, 1, err));
    walk->split = split ? split_name(split, strlen(split)) : NULL;
    for (int i = 0; i < count && status == BJ_OK; i++) status = walk_root(walk, roots[i], err);
    if (status == BJ_OK && walk->count)
        qsort(walk->items, (size_t)walk->count, sizeof *walk->items, compare_found);
    if (status == BJ_OK) *out = walk;
    else bj_walk_free(walk);
    return status;
}

void bj_walk_free(bj_walk *walk) {
    if (!walk) return;
    while (walk->names) {
        chunk *before = walk->names->before;
        bj_free(walk->names);
        walk->names = before;
    }
    bj_free(walk->parents);
    bj_free(walk->items);
    bj_free(walk);
}

int64_t bj_walk_count(const bj_walk *walk) { return walk->count; }
const char *bj_walk_id(const bj_walk *walk, int64_t index) { return walk->items[index].id; }

bj_status bj_walk_folder(char path[BJ_WALK_PATH], const bj_walk *walk, int64_t index,
                         bj_error *err) {
    const found *item = &walk->items[index];
    const char *parent = walk->parents[item->parent];
    const int slash = *parent && parent[strlen(parent) - 1] == '/';
    const int length =
        item->in_file ? snprintf(path, BJ_WALK_PATH, "%s", parent)
                      : snprintf(path, BJ_WALK_PATH, "%s%s%s", parent, slash ? "" : "/", item->id);
    if (length >= BJ_WALK_PATH)
        return bj_file_fail(err, ENAMETOOLONG, parent, "enter a folder in it");
    return BJ_OK;
}
