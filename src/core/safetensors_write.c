/* safetensors_write.c - safetensors writer. See safetensors.h for the format and its guarantees. */
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "core/safetensors_internal.h"

typedef bj_safetensors_entry entry;

#define REFUSE(err, path, name, ...)                                                               \
    bj_safetensors_refuse((err), BJ_EARG, (path), (name), __VA_ARGS__)

/* Checks a tensor and copies it, with its sizes filled in. */
static bj_status take_tensor(entry *out, const char *path, const bj_tensor_view *tensor,
                             bj_error *err) {
    const char *name = tensor->name;
    out->view = *tensor;
    if (!name) return BJ_FAIL(err, BJ_EARG, "%s: a tensor has no name", bj_safetensors_label(path));
    if ((int)tensor->dtype < 0 || tensor->dtype >= BJ_DTYPES)
        return REFUSE(err, path, name, "dtype %d is not known", (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > BJ_SAFETENSORS_MAX_RANK)
        return REFUSE(err, path, name, "%d dimensions, expected 0 to %d", tensor->rank,
                      BJ_SAFETENSORS_MAX_RANK);
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->shape[i] < 0) return REFUSE(err, path, name, "dimension %d is negative", i);
    if (!bj_tensor_view_measure(&out->view))
        return REFUSE(err, path, name, "shape has more elements than memory has bytes");
    if (out->view.bytes && !tensor->data) return REFUSE(err, path, name, "has no data");
    return BJ_OK;
}

/* Assigns data offsets. Tensors with larger elements come first, and tensors with equal element
 * sizes keep the given order. */
static bj_status place_tensors(entry *order, size_t *data_size, const char *path,
                               const bj_tensor_view *tensors, int count, bj_error *err) {
    int placed = 0;
    /* Check all tensors before placing any of them, because an unknown dtype has no size. */
    for (int i = 0; i < count; i++) BJ_TRY(take_tensor(&order[0], path, &tensors[i], err));
    for (size_t size = 8; size; size /= 2)
        for (int i = 0; i < count; i++) {
            if (bj_dtype_size(tensors[i].dtype) != size) continue;
            entry *e = &order[placed++];
            BJ_TRY(take_tensor(e, path, &tensors[i], err));
            if (e->view.bytes > (size_t)INT64_MAX - *data_size)
                return REFUSE(err, path, e->view.name, "data would end after 2^63 - 1 bytes");
            e->begin = *data_size;
            *data_size = e->end = e->begin + e->view.bytes;
        }
    return BJ_OK;
}

bj_status bj_safetensors_format_header(char **out, size_t *out_size, const char *path,
                                       const entry *order, int count, const bj_fact *facts,
                                       int facts_count, bj_error *err) {
    for (int i = 0; i < facts_count; i++)
        if (!facts[i].key || !facts[i].value)
            return BJ_FAIL(err, BJ_EARG, "%s: metadata %d has no key or no value",
                           bj_safetensors_label(path), i);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&bj_json_alc);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    int ok = root != NULL;
    if (facts_count) {
        yyjson_mut_val *metadata = yyjson_mut_obj(doc);
        ok = ok && yyjson_mut_obj_add_val(doc, root, "__metadata__", metadata);
        for (int i = 0; i < facts_count && ok; i++)
            ok = yyjson_mut_obj_add_str(doc, metadata, facts[i].key, facts[i].value);
    }
    for (int i = 0; i < count && ok; i++) {
        const bj_tensor_view *view = &order[i].view;
        yyjson_mut_val *info = yyjson_mut_obj(doc), *shape = yyjson_mut_arr(doc);
        yyjson_mut_val *offsets = yyjson_mut_arr(doc);
        for (int d = 0; d < view->rank && ok; d++)
            ok = yyjson_mut_arr_add_uint(doc, shape, (uint64_t)view->shape[d]);
        ok = ok && yyjson_mut_arr_add_uint(doc, offsets, order[i].begin) &&
             yyjson_mut_arr_add_uint(doc, offsets, order[i].end) &&
             yyjson_mut_obj_add_str(doc, info, "dtype", bj_dtype_name(view->dtype)) &&
             yyjson_mut_obj_add_val(doc, info, "shape", shape) &&
             yyjson_mut_obj_add_val(doc, info, "data_offsets", offsets) &&
             yyjson_mut_obj_add_val(doc, root, view->name, info);
    }
    yyjson_write_err problem = {YYJSON_WRITE_ERROR_MEMORY_ALLOCATION, NULL};
    size_t size = 0;
    char *text =
        ok ? yyjson_mut_write_opts(doc, YYJSON_WRITE_NOFLAG, &bj_json_alc, &size, &problem) : NULL;
    yyjson_mut_doc_free(doc);
    if (!text && problem.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION)
        return BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory for a header of %d tensors",
                       bj_safetensors_label(path), count);
    if (!text)
        return BJ_FAIL(err, BJ_EARG, "%s: a tensor name or metadata cannot be written as JSON: %s",
                       bj_safetensors_label(path), problem.msg);
    *out_size = (size + 7) / 8 * 8;
    char *padded;
    const bj_status status = BJ_ALLOC(padded, *out_size, err);
    if (padded) {
        memcpy(padded, text, size);
        memset(padded + size, ' ', *out_size - size);
    }
    bj_free(text);
    *out = padded;
    return status;
}

static bj_status stream(const char *path, const char *header, size_t header_size,
                        const entry *order, int count, bj_error *err) {
    bj_file_writer *writer = NULL;
    bj_status status;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header_size >> 8 * i);
    BJ_TRY(bj_file_writer_open(&writer, path, err));
    BJ_GOTO(status, failed, bj_file_writer_write(writer, length, sizeof length, err));
    BJ_GOTO(status, failed, bj_file_writer_write(writer, header, header_size, err));
    for (int i = 0; i < count; i++)
        BJ_GOTO(status, failed,
                bj_file_writer_write(writer, order[i].view.data, order[i].view.bytes, err));
    return bj_file_writer_commit(&writer, err);
failed:
    bj_file_writer_abort(&writer);
    return status;
}

bj_status bj_safetensors_write(const char *path, const bj_tensor_view *tensors, int count,
                               const bj_fact *metadata, int metadata_count, bj_error *err) {
    entry *order = NULL;
    char *header = NULL;
    size_t header_size = 0, data_size = 0;
    bj_status status;
    BJ_TRY(BJ_ALLOC(order, (size_t)count, err));
    BJ_GOTO(status, done, place_tensors(order, &data_size, path, tensors, count, err));
    BJ_GOTO(status, done,
            bj_safetensors_format_header(&header, &header_size, path, order, count, metadata,
                                         metadata_count, err));
    /* Do not write anything that the reader would reject, for example duplicate names. */
    BJ_GOTO(status, done, bj_safetensors_check_header(path, header, header_size, data_size, err));
    status = stream(path, header, header_size, order, count, err);
done:
    if (status == BJ_EFORMAT) { /* invalid input, not an invalid file */
        status = BJ_EARG;
        if (err) err->code = status;
    }
    bj_free(header);
    bj_free(order);
    return status;
}
