/* figures_gallery.c - see figures_gallery.h. Test: tests/cli/figures.sh */
#define _XOPEN_SOURCE 700 /* scandir */
#include "figures_gallery.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_PICTURES = 4096 };

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static bj_status add(gallery_pictures *p, const char *path, const char *prefix, const char *file,
                     bj_error *err) {
    if (p->count == MOST_PICTURES)
        return cli_error(err, BJ_EARG, "%s: more than %d pictures", path, MOST_PICTURES);
    if (p->count % 64 == 0) {
        const size_t room = (size_t)p->count + 64;
        void *paths = realloc(p->path, room * sizeof *p->path);
        if (paths) p->path = paths;
        void *names = realloc(p->name, room * sizeof *p->name);
        if (names) p->name = names;
        if (!paths || !names) return cli_error(err, BJ_ENOMEM, "out of memory");
    }
    const int length = (int)(strlen(file) - strlen(".svg"));
    snprintf(p->path[p->count], CLI_PATH_SIZE, "%s", path);
    snprintf(p->name[p->count], sizeof *p->name, "%s-%.*s", prefix, length, file);
    p->count++;
    return BJ_OK;
}

static bj_status look(gallery_pictures *p, const char *folder, const char *prefix, int deeper,
                      bj_error *err) {
    struct dirent **entries;
    const int n = scandir(folder, &entries, is_visible, alphasort);
    bj_status status = BJ_OK;
    if (n < 0)
        return errno == ENOENT ? BJ_OK
                               : cli_error(err, BJ_EIO, "%s: cannot read the folder: %s", folder,
                                           strerror(errno));
    for (int i = 0; i < n; i++) {
        char path[CLI_PATH_SIZE], name[256];
        struct stat info;
        if (status == BJ_OK) status = cli_path(path, folder, entries[i]->d_name, err);
        if (status == BJ_OK && stat(path, &info) == 0) {
            snprintf(name, sizeof name, "%.120s-%.120s", prefix, entries[i]->d_name);
            if (S_ISREG(info.st_mode) && cli_ends_in(entries[i]->d_name, ".svg"))
                status = add(p, path, prefix, entries[i]->d_name, err);
            else if (S_ISDIR(info.st_mode) && deeper) status = look(p, path, name, 0, err);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

bj_status gallery_pictures_find(gallery_pictures *out, const char *folder, bj_error *err) {
    *out = (gallery_pictures){0};
    return look(out, folder, "gallery", 1, err);
}

void gallery_pictures_free(gallery_pictures *pictures) {
    free(pictures->path);
    free(pictures->name);
    *pictures = (gallery_pictures){0};
}

bj_status gallery_picture_copy(FILE *to, const char *path, bj_error *err) {
    char block[16384];
    size_t n;
    struct stat info;
    FILE *from = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (!from) return cli_error(err, BJ_EIO, "%s: cannot read the file: %s", path, strerror(errno));
    while ((n = fread(block, 1, sizeof block, from)) > 0) fwrite(block, 1, n, to);
    const int failed = ferror(from);
    fclose(from);
    return failed ? cli_error(err, BJ_EIO, "%s: cannot read the file", path) : BJ_OK;
}
