/* picture.c - replaces the SVG in the stream of a file by a PNG or PDF; see picture.h.
 *
 * The few functions of librsvg and cairo that are called are declared here, after the documentation
 * of librsvg 2.46 and cairo 1.10, whose interfaces are stable; both come with one library.
 */
#define _POSIX_C_SOURCE 200809L /* pread, ftruncate */
#include "picture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rectangle {
    double x, y, width, height;
} rectangle;

typedef int write_function(void *closure, const unsigned char *data, unsigned length);

typedef struct renderer {
    void *library;
    void *(*handle_new)(const unsigned char *data, size_t size, void **error);
    int (*handle_size)(void *handle, double *width, double *height);
    int (*handle_render)(void *handle, void *cairo, const rectangle *viewport, void **error);
    void (*unref)(void *object);
    void (*free_error)(void *error);
    void *(*image_create)(int format, int width, int height);
    void *(*pdf_create)(write_function *write, void *closure, double width, double height);
    int (*png_write)(void *surface, write_function *write, void *closure);
    void *(*cairo_create)(void *surface);
    void (*cairo_scale)(void *cairo, double x, double y);
    int (*cairo_status)(void *cairo);
    void (*cairo_destroy)(void *cairo);
    void (*surface_finish)(void *surface);
    void (*surface_destroy)(void *surface);
} renderer;

enum { ARGB32 = 0, PNG_SCALE = 2 /* pixels of the PNG per unit of the SVG */ };

int cli_picture_name(const char *path) {
    return cli_ends_in(path, ".svg") || cli_ends_in(path, ".png") || cli_ends_in(path, ".pdf");
}

static bj_status renderer_open(renderer *r, bj_error *err) {
    const struct {
        const char *name;
        void *function; /* where its address goes */
    } functions[] = {
        {"rsvg_handle_new_from_data", &r->handle_new},
        {"rsvg_handle_get_intrinsic_size_in_pixels", &r->handle_size},
        {"rsvg_handle_render_document", &r->handle_render},
        {"g_object_unref", &r->unref},
        {"g_error_free", &r->free_error},
        {"cairo_image_surface_create", &r->image_create},
        {"cairo_pdf_surface_create_for_stream", &r->pdf_create},
        {"cairo_surface_write_to_png_stream", &r->png_write},
        {"cairo_create", &r->cairo_create},
        {"cairo_scale", &r->cairo_scale},
        {"cairo_status", &r->cairo_status},
        {"cairo_destroy", &r->cairo_destroy},
        {"cairo_surface_finish", &r->surface_finish},
        {"cairo_surface_destroy", &r->surface_destroy},
    };
    r->library = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!r->library)
        return cli_error(
            err, BJ_EARG,
            "PNG and PDF output needs librsvg, which is not installed\n"
            "hint: install librsvg (Debian: apt install librsvg2-2), or write an .svg file");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(r->library, functions[i].name);
        if (!address)
            return cli_error(
                err, BJ_EARG,
                "librsvg-2.so.2: does not contain %s; PNG and PDF output needs librsvg 2.52",
                functions[i].name);
        memcpy(functions[i].function, &address, sizeof address);
    }
    return BJ_OK;
}

static int write_to_stream(void *closure, const unsigned char *data, unsigned length) {
    enum { SUCCESS = 0, WRITE_ERROR = 11 };
    return fwrite(data, 1, length, closure) == length ? SUCCESS : WRITE_ERROR;
}

static bj_status render(const renderer *r, const unsigned char *svg, size_t size, cli_file *file,
                        bj_error *err) {
    void *why = NULL;
    rectangle page = {0, 0, 0, 0};
    void *handle = r->handle_new(svg, size, &why);
    if (!handle) {
        r->free_error(why);
        return cli_error(err, BJ_EFORMAT, "%s: librsvg cannot read the picture", file->path);
    }
    int failed = !r->handle_size(handle, &page.width, &page.height);
    const int png = cli_ends_in(file->path, ".png");
    void *surface =
        png ? r->image_create(ARGB32, (int)page.width * PNG_SCALE, (int)page.height * PNG_SCALE)
            : r->pdf_create(write_to_stream, file->stream, page.width, page.height);
    void *cairo = r->cairo_create(surface);
    if (png) r->cairo_scale(cairo, PNG_SCALE, PNG_SCALE);
    if (!failed && !r->handle_render(handle, cairo, &page, &why)) {
        failed = 1;
        r->free_error(why);
    }
    failed = failed || r->cairo_status(cairo);
    r->cairo_destroy(cairo);
    if (png) failed = failed || r->png_write(surface, write_to_stream, file->stream);
    else r->surface_finish(surface);
    r->surface_destroy(surface);
    r->unref(handle);
    return failed ? cli_error(err, BJ_EIO, "%s: cannot draw the picture", file->path) : BJ_OK;
}

/* Reads back the bytes written to the file so far. The caller frees them. */
static bj_status written(unsigned char **data, size_t *size, cli_file *file, bj_error *err) {
    const long end = fflush(file->stream) ? -1 : ftell(file->stream);
    ssize_t n = 1;
    *size = 0;
    *data = end > 0 ? malloc((size_t)end) : NULL;
    if (end > 0 && !*data) return cli_error(err, BJ_ENOMEM, "out of memory");
    while (*data && (long)*size < end && n > 0) {
        n = pread(bj_file_writer_descriptor(file->writer), *data + *size, (size_t)end - *size, (off_t)*size);
        if (n > 0) *size += (size_t)n;
    }
    if (*data && (long)*size == end) return BJ_OK;
    return cli_error(err, BJ_EIO, "%s: cannot read the drawing back", file->path);
}

static bj_status convert(cli_file *file, bj_error *err) {
    renderer r;
    unsigned char *svg = NULL;
    size_t size = 0;
    bj_status status = renderer_open(&r, err);
    if (status == BJ_OK) status = written(&svg, &size, file, err);
    if (status == BJ_OK) {
        rewind(file->stream);
        if (ftruncate(bj_file_writer_descriptor(file->writer), 0))
            status = cli_error(err, BJ_EIO, "%s: cannot write the picture", file->path);
    }
    if (status == BJ_OK) status = render(&r, svg, size, file, err);
    free(svg);
    return status; /* the library stays: its types cannot be unloaded */
}

bj_status cli_picture_commit(cli_file *file, bj_error *err) {
    if (!cli_ends_in(file->path, ".svg")) {
        const bj_status status = convert(file, err);
        if (status != BJ_OK) {
            cli_file_abort(file);
            return status;
        }
    }
    return cli_file_commit(file, err);
}
