/* folder.c - see folder.h for the contract. Test: tests/train/test_state_files.c */
#define _DEFAULT_SOURCE /* syscall; includes POSIX.1-2008 */
#define _XOPEN_SOURCE 700
#include "core/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/temporary.h"

enum {
    EXCHANGE = 2 /* RENAME_EXCHANGE, which libc defines only for GNU extensions */
};

struct bj_folder_writer {
    const char *const *files;
    int parent;                   /* directory that contains the names below */
    bj_temporary temporary;       /* the new folder */
    char name[BJ_FILE_NAME];      /* final name */
    char backup[BJ_FILE_NAME];    /* .<name>.old */
    char path[BJ_FOLDER_PATH];    /* as given by the caller, for messages */
    char inside[BJ_FOLDER_PATH];  /* path of the hidden folder */
};

/* -------------------------------------------------------------------------------------- opening */

static int exists(int parent, const char *name) {
    struct stat info;
    return fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static void writer_free(bj_folder_writer *w) {
    if (!w) return;
    bj_temporary_remove(&w->temporary);
    if (w->parent >= 0) close(w->parent);
    bj_free(w);
}

/* Copies the path without trailing slashes. Returns 0 if it is too long. */
static int trim(char out[BJ_FOLDER_PATH], const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (length >= BJ_FOLDER_PATH) return 0;
    memcpy(out, path, length);
    out[length] = '\0';
    return 1;
}

/* Resolves symbolic links, sets `final` to the resulting path and opens its parent directory. */
static bj_status locate(bj_folder_writer *w, char final[BJ_FOLDER_PATH], const char *path,
                        bj_error *err) {
    struct stat info;
    if (!trim(w->path, path)) return bj_file_fail(err, ENAMETOOLONG, path, "create");
    const char *slash = strrchr(w->path, '/'), *base = slash ? slash + 1 : w->path;
    if (!strcmp(base, ".") || !strcmp(base, ".."))
        return BJ_FAIL(err, BJ_EIO, "%s: cannot create: no folder name given", w->path);
    memcpy(final, w->path, strlen(w->path) + 1);
    if (stat(w->path, &info) == 0) {
        char resolved[BJ_FOLDER_PATH]; /* PATH_MAX on Linux, as required by realpath */
        if (!S_ISDIR(info.st_mode)) return bj_file_fail(err, ENOTDIR, w->path, "replace");
        if (access(w->path, W_OK | X_OK)) return bj_file_fail(err, errno, w->path, "replace");
        if (!realpath(w->path, resolved)) return bj_file_fail(err, errno, w->path, "resolve");
        memcpy(final, resolved, strlen(resolved) + 1);
    } else if (errno != ENOENT) {
        return bj_file_fail(err, errno, w->path, "create");
    } else if (lstat(w->path, &info) == 0) {
        return BJ_FAIL(err, BJ_EIO, "%s: cannot create: broken symbolic link", w->path);
    }
    BJ_TRY(bj_file_open_parent(&w->parent, w->name, final, w->path, err));
    if (strlen(w->name) > BJ_TEMPORARY_TARGET) return bj_file_fail(err, ENAMETOOLONG, w->path, "create");
    snprintf(w->backup, sizeof w->backup, ".%.*s.old", (int)BJ_TEMPORARY_TARGET, w->name);
    return BJ_OK;
}

/* Fails if the existing folder contains anything other than its own files. */
static bj_status check_content(const bj_folder_writer *w, bj_error *err) {
    DIR *dir = bj_file_list(w->parent, w->name);
    bj_status status = BJ_OK;
    if (!dir) return errno == ENOENT ? BJ_OK : bj_file_fail(err, errno, w->path, "list");
    for (const char *entry; status == BJ_OK && (entry = bj_file_next(dir));)
        if (!bj_temporary_belongs(entry, w->files))
            status = BJ_FAIL(err, BJ_EIO,
                             "%.200s: cannot be replaced, because it contains '%s', "
                             "which would be lost",
                             w->path, entry);
    closedir(dir);
    return status;
}

static bj_status make_temporary(bj_folder_writer *w, const char *final, bj_error *err) {
    struct stat old;
    const int replacing = fstatat(w->parent, w->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists(w->parent, w->backup))
        bj_temporary_remove_folder(w->parent, w->backup, w->files);
    BJ_TRY(bj_temporary_create(&w->temporary, w->parent, w->name, w->files, w->path, err));
    const size_t prefix = strlen(final) - strlen(w->name);
    if (prefix + strlen(w->temporary.name) >= sizeof w->inside)
        return bj_file_fail(err, ENAMETOOLONG, w->path, "create");
    memcpy(w->inside, final, prefix);
    memcpy(w->inside + prefix, w->temporary.name, strlen(w->temporary.name) + 1);
    if (replacing && fchmod(w->temporary.fd, old.st_mode & 07777))
        return bj_file_fail(err, errno, w->path, "keep the permissions");
    return BJ_OK;
}

static bj_status open_writer(bj_folder_writer *w, const char *path, bj_error *err) {
    char final[BJ_FOLDER_PATH];
    BJ_TRY(locate(w, final, path, err));
    if (!exists(w->parent, w->name) && exists(w->parent, w->backup) &&
        renameat(w->parent, w->backup, w->parent, w->name))
        return bj_file_fail(err, errno, w->path,
                            "restore the folder that an interrupted writer moved");
    BJ_TRY(check_content(w, err));
    return make_temporary(w, final, err);
}

bj_status bj_folder_writer_open(bj_folder_writer **out, const char *path, const char *const *files,
                                bj_error *err) {
    bj_folder_writer *w;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(w, 1, err));
    w->files = files;
    w->parent = w->temporary.fd = -1;
    w->temporary.slot = -1;
    const bj_status status = open_writer(w, path, err);
    if (status == BJ_OK) *out = w;
    else writer_free(w);
    return status;
}

const char *bj_folder_writer_path(const bj_folder_writer *writer) { return writer->inside; }

/* ----------------------------------------------------------------------------------- publishing */

/* Exchanges two names. Returns 0 and changes nothing if the system does not support it. */
static int exchange(int dir, const char *a, const char *b) {
#ifdef SYS_renameat2
    return syscall(SYS_renameat2, dir, a, dir, b, EXCHANGE) == 0;
#else
    (void)dir, (void)a, (void)b;
    return 0;
#endif
}

static bj_status publish(bj_folder_writer *w, bj_error *err) {
    static const char rename_failed[] = "rename the finished folder";
    const char *old = NULL; /* current name of the replaced folder */
    if (!exists(w->parent, w->name)) {
        if (bj_temporary_rename(&w->temporary, w->name))
            return bj_file_fail(err, errno, w->path, rename_failed);
    } else if (exchange(w->parent, w->temporary.name, w->name)) {
        old = w->temporary.name;
    } else {
        if (renameat(w->parent, w->name, w->parent, w->backup))
            return bj_file_fail(err, errno, w->path, "move the old folder aside");
        if (bj_temporary_rename(&w->temporary, w->name)) {
            const int number = errno;
            (void)renameat(w->parent, w->backup, w->parent, w->name);
            return bj_file_fail(err, number, w->path, rename_failed);
        }
        old = w->backup;
    }
    bj_temporary_forget(&w->temporary);
    bj_temporary_close(&w->temporary); /* releases the lock on the published folder */
    /* Sync first, so that the new folder survives a power failure before the old one is removed. */
    BJ_TRY(
        bj_file_sync_folder(w->parent, w->path, "sync the directory of the finished folder", err));
    if (old) bj_temporary_remove_folder(w->parent, old, w->files);
    return BJ_OK;
}

bj_status bj_folder_writer_commit(bj_folder_writer **writer, bj_error *err) {
    bj_status status =
        bj_file_sync_folder((*writer)->temporary.fd, (*writer)->path, "sync the new folder", err);
    if (status == BJ_OK) status = publish(*writer, err);
    bj_folder_writer_abort(writer);
    return status;
}

void bj_folder_writer_abort(bj_folder_writer **writer) {
    writer_free(*writer);
    *writer = NULL;
}

/* -------------------------------------------------------------------------------------- reading */

bj_status bj_folder_find(char out[BJ_FOLDER_PATH], const char *path, const char *file,
                         bj_error *err) {
    char folder[BJ_FOLDER_PATH], backup[BJ_FOLDER_PATH + 8];
    struct stat info;
    if (!trim(folder, path)) return bj_file_fail(err, ENAMETOOLONG, path, "open");
    const char *slash = strrchr(folder, '/'), *base = slash ? slash + 1 : folder;
    snprintf(backup, sizeof backup, "%.*s.%s.old", (int)(base - folder), folder, base);
    const int moved = stat(folder, &info) && errno == ENOENT && stat(backup, &info) == 0;
    if (snprintf(out, BJ_FOLDER_PATH, "%s/%s", moved ? backup : folder, file) >= BJ_FOLDER_PATH)
        return bj_file_fail(err, ENAMETOOLONG, path, "open");
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- creating */

bj_status bj_folders_make(const char *path, bj_error *err) {
    char part[BJ_FOLDER_PATH];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return BJ_FAIL(err, BJ_EARG, "%.200s...: the path is too long", path);
    for (char *c = part;; c++) {
        if ((*c && *c != '/') || c == part) continue;
        const char kept = *c;
        *c = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return bj_file_fail(err, errno, part, "create the folder");
        *c = kept;
        if (!kept) break;
    }
    struct stat info;
    if (stat(part, &info)) return bj_file_fail(err, errno, part, "create the folder");
    if (!S_ISDIR(info.st_mode)) return bj_file_fail(err, ENOTDIR, part, "create the folder");
    return BJ_OK;
}
