/* writer.c - see writer.h for the supported subset.
 *
 *   "PAR1"  chunks of the first row group, column by column, then of the second, ...
 *   footer  schema and row groups in Thrift's compact protocol   u32 footer size   "PAR1"
 *
 * Invariants
 *   1. Arguments are checked before the first byte of a row group is written.
 *   2. After a failure within a row group the file can only be discarded.
 *   3. The bytes depend only on the fields, the codec, the rows and their division into row groups.
 * Tests: tests/parquet/test_writer.c, tests/parquet/peer_writer.py
 */
#include <string.h>

#include "core/alloc.h"
#include "parquet/writer_internal.h"

/* Values from the Parquet specification. */
enum { OPTIONAL = 1, REPEATED = 2 };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3 };
enum { LOGICAL_STRING = 1, LOGICAL_LIST = 3 };

enum { FIELDS_MAX = 1 << 12 };

static const char magic[4] = {'P', 'A', 'R', '1'};

/* --------------------------------------------------------------------------------------- handle */

static bj_status check_field(const bj_parquet_field *fields, int index, bj_error *err) {
    const bj_parquet_field *f = &fields[index];
    if (!f->name || !*f->name)
        return BJ_FAIL(err, BJ_EARG, "parquet writer: column %d has no name", index);
    if (f->type != BJ_PARQUET_BOOLEAN && f->type != BJ_PARQUET_INT64 &&
        f->type != BJ_PARQUET_DOUBLE && f->type != BJ_PARQUET_BYTE_ARRAY)
        return BJ_FAIL(err, BJ_EARG, "parquet writer: column '%s': type %d cannot be written",
                       f->name, (int)f->type);
    if (f->is_list && f->type != BJ_PARQUET_DOUBLE)
        return BJ_FAIL(err, BJ_EARG, "parquet writer: column '%s': only doubles can be lists",
                       f->name);
    for (int i = 0; i < index; i++)
        if (!strcmp(fields[i].name, f->name))
            return BJ_FAIL(err, BJ_EARG, "parquet writer: two columns are called '%s'", f->name);
    return BJ_OK;
}

bj_status bj_parquet_writer_create(bj_parquet_writer **out, const bj_parquet_field *fields,
                                   int count, bj_parquet_codec codec, bj_error *err) {
    bj_parquet_writer *writer = NULL;
    bj_status status;
    *out = NULL;
    if (count < 1 || count > FIELDS_MAX)
        return BJ_FAIL(err, BJ_EARG, "parquet writer: %d columns, expected 1 to %d", count,
                       (int)FIELDS_MAX);
    if (codec != BJ_PARQUET_PLAIN_PAGES && codec != BJ_PARQUET_SNAPPY)
        return BJ_FAIL(err, BJ_EARG, "parquet writer: codec %d is not known", (int)codec);
    for (int i = 0; i < count; i++) BJ_TRY(check_field(fields, i, err));
    BJ_TRY(BJ_ALLOC(writer, 1, err));
    BJ_GOTO(status, failed, BJ_ALLOC(writer->fields, (size_t)count, err));
    writer->codec = codec;
    for (; writer->count < count; writer->count++) {
        bj_parquet_field *f = &writer->fields[writer->count];
        *f = fields[writer->count];
        f->name = bj_strdup(f->name);
        if (!f->name) {
            status = BJ_FAIL(err, BJ_ENOMEM, "parquet writer: out of memory");
            goto failed;
        }
    }
    *out = writer;
    return BJ_OK;
failed:
    bj_parquet_writer_free(writer);
    return status;
}

static void drop_file(bj_parquet_writer *writer) {
    bj_file_writer_abort(&writer->file);
    bj_free(writer->path);
    writer->path = NULL;
}

void bj_parquet_writer_free(bj_parquet_writer *writer) {
    if (!writer) return;
    drop_file(writer);
    for (int i = 0; i < writer->count; i++) bj_free((char *)(uintptr_t)writer->fields[i].name);
    bj_free(writer->fields);
    bj_bytes_free(&writer->footer);
    bj_bytes_free(&writer->group);
    bj_bytes_free(&writer->page);
    bj_bytes_free(&writer->head);
    bj_bytes_free(&writer->packed);
    bj_distinct_free(&writer->distinct);
    bj_free(writer);
}

bj_status bj_parquet_writer_put(bj_parquet_writer *writer, const void *data, size_t size,
                                bj_error *err) {
    writer->offset += size;
    return bj_file_writer_write(writer->file, data, size, err);
}

bj_status bj_parquet_writer_open(bj_parquet_writer *writer, const char *path, bj_error *err) {
    bj_status status;
    if (writer->file)
        return BJ_FAIL(err, BJ_EARG, "%s: cannot open: %s is not finished", path, writer->path);
    writer->path = bj_strdup(path);
    if (!writer->path) return BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory", path);
    writer->offset = 0;
    writer->rows = writer->groups = 0;
    writer->broken = 0;
    bj_bytes_reset(&writer->footer);
    BJ_GOTO(status, failed, bj_file_writer_open(&writer->file, path, err));
    BJ_GOTO(status, failed, bj_parquet_writer_put(writer, magic, sizeof magic, err));
    return BJ_OK;
failed:
    drop_file(writer);
    return status;
}

/* ----------------------------------------------------------------------------------- row groups */

static bj_status check_rows(const bj_parquet_writer *writer, int64_t rows,
                            const bj_parquet_data *data, const int64_t *const *starts,
                            bj_error *err) {
    if (!writer->file) return BJ_FAIL(err, BJ_EARG, "parquet writer: no file is open");
    if (writer->broken)
        return BJ_FAIL(err, BJ_EARG, "%s: an earlier row group failed", writer->path);
    if (rows < 0 || rows > INT32_MAX)
        return BJ_FAIL(err, BJ_EARG, "%s: a row group has %lld rows, expected 0 to %d",
                       writer->path, (long long)rows, INT32_MAX);
    for (int i = 0; rows && i < writer->count; i++) {
        const bj_parquet_field *f = &writer->fields[i];
        const int64_t *start = starts ? starts[i] : NULL;
        if (!data[i].integers && !(f->is_list && start && start[rows] == start[0]))
            return BJ_FAIL(err, BJ_EARG, "%s: column '%s' has no data", writer->path, f->name);
        if (!start != !f->is_list)
            return BJ_FAIL(err, BJ_EARG, "%s: column '%s' %s", writer->path, f->name,
                           f->is_list ? "is a list without starts"
                                      : "is not a list but has starts");
        for (int64_t r = 0; f->is_list && r < rows; r++)
            if (start[r] < 0 || start[r + 1] < start[r] ||
                start[r + 1] - start[r] > BJ_PAGE_MAX / 16)
                return BJ_FAIL(
                    err, BJ_EARG,
                    "%s: column '%s': row %lld has the invalid element range %lld to %lld",
                    writer->path, f->name, (long long)r, (long long)start[r],
                    (long long)start[r + 1]);
        for (int64_t r = 0; f->type == BJ_PARQUET_BYTE_ARRAY && r < rows; r++)
            if (data[i].texts[r].size > BJ_PAGE_MAX / 2)
                return BJ_FAIL(
                    err, BJ_EARG,
                    "%s: column '%s': row %lld has a string of %zu bytes, expected at most %d",
                    writer->path, f->name, (long long)r, data[i].texts[r].size, BJ_PAGE_MAX / 2);
    }
    return BJ_OK;
}

bj_status bj_parquet_writer_rows(bj_parquet_writer *writer, int64_t rows,
                                 const bj_parquet_data *data, const int64_t *const *starts,
                                 bj_error *err) {
    uint64_t raw = 0, stored = 0;
    BJ_TRY(check_rows(writer, rows, data, starts, err));
    if (!rows) return BJ_OK;
    const uint64_t begin = writer->offset;
    writer->broken = 1;
    bj_bytes_reset(&writer->group);
    for (int i = 0; i < writer->count; i++) {
        bj_chunk c = {.field = &writer->fields[i],
                      .data = data[i],
                      .start = writer->fields[i].is_list ? starts[i] : NULL};
        BJ_TRY(bj_chunk_write(writer, &c, rows, err));
        raw += c.raw;
        stored += c.stored;
    }
    bj_emit group = {&writer->footer, 0};
    bj_emit_list(&group, 1, BJ_EMIT_STRUCT, (size_t)writer->count);
    bj_bytes_put(&writer->footer, writer->group.data, writer->group.size);
    bj_emit_int(&group, 2, BJ_EMIT_I64, (int64_t)raw);
    bj_emit_int(&group, 3, BJ_EMIT_I64, rows);
    bj_emit_int(&group, 5, BJ_EMIT_I64, (int64_t)begin);
    bj_emit_int(&group, 6, BJ_EMIT_I64, (int64_t)stored);
    bj_emit_end(&group);
    BJ_TRY(bj_bytes_check(&writer->footer, err));
    writer->rows += rows;
    writer->groups++;
    writer->broken = 0;
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- footer */

/* Writes the converted type, for older readers, and the logical type of texts and lists. */
static void put_meaning(bj_emit *element, int converted, int logical) {
    bj_emit_int(element, 6, BJ_EMIT_I32, converted);
    bj_emit type = bj_emit_struct(element, 10);
    bj_emit kind = bj_emit_struct(&type, logical);
    bj_emit_end(&kind);
    bj_emit_end(&type);
}

static void put_leaf(bj_bytes *out, const char *name, const bj_parquet_field *f) {
    bj_emit element = {out, 0};
    bj_emit_int(&element, 1, BJ_EMIT_I32, f->type);
    bj_emit_int(&element, 3, BJ_EMIT_I32, OPTIONAL);
    bj_emit_text(&element, 4, name);
    if (f->type == BJ_PARQUET_BYTE_ARRAY) put_meaning(&element, CONVERTED_UTF8, LOGICAL_STRING);
    bj_emit_end(&element);
}

static void put_schema(bj_emit *file, const bj_parquet_writer *writer) {
    size_t elements = 1;
    for (int i = 0; i < writer->count; i++) elements += writer->fields[i].is_list ? 3 : 1;
    bj_emit_list(file, 2, BJ_EMIT_STRUCT, elements);
    bj_emit root = {file->out, 0};
    bj_emit_text(&root, 4, "schema");
    bj_emit_int(&root, 5, BJ_EMIT_I32, writer->count);
    bj_emit_end(&root);
    for (int i = 0; i < writer->count; i++) {
        const bj_parquet_field *f = &writer->fields[i];
        if (f->is_list) {
            bj_emit list = {file->out, 0};
            bj_emit_int(&list, 3, BJ_EMIT_I32, OPTIONAL);
            bj_emit_text(&list, 4, f->name);
            bj_emit_int(&list, 5, BJ_EMIT_I32, 1);
            put_meaning(&list, CONVERTED_LIST, LOGICAL_LIST);
            bj_emit_end(&list);
            bj_emit middle = {file->out, 0};
            bj_emit_int(&middle, 3, BJ_EMIT_I32, REPEATED);
            bj_emit_text(&middle, 4, "list");
            bj_emit_int(&middle, 5, BJ_EMIT_I32, 1);
            bj_emit_end(&middle);
        }
        put_leaf(file->out, f->is_list ? "element" : f->name, f);
    }
}

static bj_status put_footer(bj_parquet_writer *writer, bj_error *err) {
    bj_bytes *const out = &writer->page;
    bj_bytes_reset(out);
    bj_emit file = {out, 0};
    bj_emit_int(&file, 1, BJ_EMIT_I32, 2); /* format version */
    put_schema(&file, writer);
    bj_emit_int(&file, 3, BJ_EMIT_I64, writer->rows);
    bj_emit_list(&file, 4, BJ_EMIT_STRUCT, (size_t)writer->groups);
    bj_bytes_put(out, writer->footer.data, writer->footer.size);
    bj_emit_text(&file, 6, "branchjepa version " BJ_VERSION);
    bj_emit_end(&file);
    const size_t size = out->size;
    bj_bytes_put_u32(out, (uint32_t)size);
    bj_bytes_put(out, magic, sizeof magic);
    BJ_TRY(bj_bytes_check(out, err));
    if (size > BJ_PAGE_MAX)
        return BJ_FAIL(err, BJ_EARG, "%s: the footer has %zu bytes, expected at most %d",
                       writer->path, size, (int)BJ_PAGE_MAX);
    return bj_parquet_writer_put(writer, out->data, out->size, err);
}

bj_status bj_parquet_writer_commit(bj_parquet_writer *writer, bj_error *err) {
    bj_status status;
    if (!writer->file) return BJ_FAIL(err, BJ_EARG, "parquet writer: no file is open");
    if (writer->broken)
        status = BJ_FAIL(err, BJ_EARG, "%s: not published: a row group failed", writer->path);
    else status = put_footer(writer, err);
    if (status == BJ_OK) status = bj_file_writer_commit(&writer->file, err);
    drop_file(writer);
    return status;
}
