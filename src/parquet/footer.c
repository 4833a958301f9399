/* footer.c - see footer.h. */
#include "parquet/footer.h"

#include <limits.h>
#include <string.h>

#include "parquet/thrift.h"

enum { REQUIRED, OPTIONAL, REPEATED }; /* repetition types of the Parquet specification */

/* Schema annotations that this reader uses. */
enum { NOTE_TEXT = 1, NOTE_LIST = 2, NOTE_MAP = 4, NOTE_UNSIGNED = 8, NOTE_DECIMAL = 16 };

typedef struct element {
    const char *name;
    size_t name_size;
    int type; /* -1 for a group */
    int type_length, repetition, children, notes, scale;
} element;

typedef struct parser {
    bj_footer *out;
    bj_store *store;
    bj_wire in;
    const char *label;
    bj_error *err;
} parser;

#define REFUSE(p, ...) BJ_FAIL((p)->err, BJ_EFORMAT, __VA_ARGS__)

/* Copies a text. Names appear in messages, so `clean` replaces control characters with '?'. */
static bj_status copy_text(const char **out, parser *p, const char *text, size_t size, int clean) {
    char *copy;
    BJ_TRY(BJ_STORE(copy, p->store, size + 1, p->err));
    if (size) memcpy(copy, text, size);
    copy[size] = '\0';
    for (size_t i = 0; clean && i < size; i++)
        if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7f) copy[i] = '?';
    *out = copy;
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- schema */

static int notes_of_converted(int converted) {
    switch (converted) {
    case 0:                    /* UTF8 */
    case 4:                    /* ENUM */
    case 19: return NOTE_TEXT; /* JSON */
    case 1:
    case 2: return NOTE_MAP;
    case 3: return NOTE_LIST;
    case 5: return NOTE_DECIMAL;
    case 11:
    case 12:
    case 13:
    case 14: return NOTE_UNSIGNED;
    default: return 0;
    }
}

/* Parses the logical type, which is a union whose field id identifies the type. */
static void parse_logical(element *e, bj_wire *in) {
    bj_wire_field kind = {0}, field = {0};
    while (bj_wire_next(in, &kind)) {
        if (!bj_wire_is_struct(in, kind)) return;
        if (kind.id == 1 || kind.id == 4 || kind.id == 12) e->notes |= NOTE_TEXT;
        if (kind.id == 2) e->notes |= NOTE_MAP;
        if (kind.id == 3) e->notes |= NOTE_LIST;
        if (kind.id == 5) e->notes |= NOTE_DECIMAL;
        for (field.id = 0; bj_wire_next(in, &field);) {
            if (kind.id == 5 && field.id == 1) e->scale = bj_wire_int32(in, field);
            else if (kind.id == 10 && field.id == 2)
                e->notes |= bj_wire_bool(in, field) ? 0 : NOTE_UNSIGNED;
            else bj_wire_skip(in, field.type);
        }
    }
}

static void parse_element(element *e, bj_wire *in) {
    bj_wire_field field = {0};
    *e = (element){.name = "", .type = -1};
    while (bj_wire_next(in, &field)) {
        switch (field.id) {
        case 1: e->type = bj_wire_int32(in, field); break;
        case 2: e->type_length = bj_wire_int32(in, field); break;
        case 3: e->repetition = bj_wire_int32(in, field); break;
        case 4: e->name = bj_wire_binary(&e->name_size, in, field); break;
        case 5: e->children = bj_wire_int32(in, field); break;
        case 6: e->notes |= notes_of_converted(bj_wire_int32(in, field)); break;
        case 7: e->scale = bj_wire_int32(in, field); break;
        case 10:
            if (bj_wire_is_struct(in, field)) parse_logical(e, in);
            break;
        default: bj_wire_skip(in, field.type);
        }
    }
}

/* Returns the number of elements in the subtree at `at`, including `at`. Returns 0 if the list of
 * elements ends too early. */
static size_t subtree(const element *all, size_t count, size_t at) {
    size_t end = at;
    for (size_t missing = 1; missing; missing--) {
        if (end == count) return 0;
        if (all[end].type < 0) missing += (size_t)all[end].children;
        end++;
    }
    return end - at;
}

static void describe_leaf(bj_leaf *leaf, const element *e) {
    bj_parquet_column *column = &leaf->column;
    column->type = (bj_parquet_type)e->type;
    column->is_text = e->type == BJ_PARQUET_BYTE_ARRAY && e->notes & NOTE_TEXT;
    column->is_unsigned =
        (e->type == BJ_PARQUET_INT32 || e->type == BJ_PARQUET_INT64) && e->notes & NOTE_UNSIGNED;
    if (e->type == BJ_PARQUET_INT96) column->fixed_size = 12;
    if (e->type == BJ_PARQUET_FIXED) column->fixed_size = e->type_length;
    leaf->scale = e->notes & NOTE_DECIMAL ? e->scale : -1;
    if (e->type > BJ_PARQUET_FIXED) leaf->obstacle = "an unknown type";
    if (e->type == BJ_PARQUET_FIXED && e->type_length <= 0)
        leaf->obstacle = "fixed-size values without a size";
    if (e->notes & NOTE_DECIMAL && (e->scale < 0 || e->scale > 18))
        leaf->obstacle = "a decimal has more than 18 digits after the point";
}

/* Describes the top-level field at all[at], whose subtree has `size` elements. */
static void describe_field(bj_leaf *leaf, const element *all, size_t at, size_t size) {
    const element *top = &all[at], *e = top;
    leaf->max_def = top->repetition != REQUIRED;
    leaf->max_rep = top->repetition == REPEATED;
    leaf->scale = -1;
    if (top->type >= 0) {
        leaf->column.is_list = top->repetition == REPEATED;
    } else if (top->notes & NOTE_LIST && top->repetition != REPEATED && size <= 3 &&
               top->children == 1 && e[1].repetition == REPEATED &&
               (size == 2 || e[2].repetition != REPEATED)) {
        leaf->column.is_list = 1;
        leaf->list_def = leaf->max_def;
        leaf->max_rep = 1;
        e += size - 1;
        leaf->max_def += 1 + (size == 3 && e->repetition == OPTIONAL);
    } else {
        leaf->obstacle = top->notes & NOTE_MAP    ? "a map"
                         : top->notes & NOTE_LIST ? "a list of lists or of groups"
                                                  : "a group of fields";
        while (e->type < 0 && e + 1 < all + at + size) e++;
    }
    if (e->type >= 0) describe_leaf(leaf, e);
    else if (!leaf->obstacle) leaf->obstacle = "a group of fields";
    leaf->column.readable = !leaf->obstacle;
}

static bj_status build_columns(parser *p, const element *all, size_t count) {
    bj_footer *out = p->out;
    if (!count || all[0].type >= 0) return REFUSE(p, "%s: the schema has no root", p->label);
    if (subtree(all, count, 0) != count)
        return REFUSE(p, "%s: the schema has %zu elements, but its tree has a different number", p->label,
                      count);
    BJ_TRY(BJ_STORE(out->columns, p->store, (size_t)all[0].children, p->err));
    size_t leaves = 0;
    for (size_t at = 1, size; at < count; at += size) {
        bj_leaf *leaf = &out->columns[out->count++];
        size = subtree(all, count, at);
        *leaf = (bj_leaf){.chunk = (int)leaves};
        BJ_TRY(copy_text(&leaf->column.name, p, all[at].name, all[at].name_size, 1));
        describe_field(leaf, all, at, size);
        for (size_t i = at; i < at + size; i++) leaves += all[i].type >= 0;
    }
    out->chunks_each = (int)leaves;
    return BJ_OK;
}

static bj_status parse_schema(parser *p, bj_wire_field field) {
    const size_t count = bj_wire_structs(&p->in, field);
    element *all;
    BJ_TRY(BJ_STORE(all, p->store, count, p->err));
    for (size_t i = 0; i < count; i++) {
        parse_element(&all[i], &p->in);
        if (p->in.bad) return BJ_OK; /* the error is reported at the end */
        if (all[i].type < -1 || all[i].children < 0 || (size_t)all[i].children >= count ||
            all[i].repetition < REQUIRED || all[i].repetition > REPEATED)
            return REFUSE(p,
                          "%s: schema element %zu is invalid: "
                          "type %d, repetition %d and %d children of %zu elements",
                          p->label, i, all[i].type, all[i].repetition, all[i].children, count);
        if (all[i].type >= 0) all[i].children = 0;
    }
    if (p->in.bad) return BJ_OK;
    if (p->out->columns) return REFUSE(p, "%s: the schema is given twice", p->label);
    return build_columns(p, all, count);
}

/* ---------------------------------------------------------------------------------- row groups */

static void parse_chunk_metadata(bj_chunk *chunk, bj_wire *in) {
    int64_t data = -1, dictionary = 0;
    bj_wire_field field = {0};
    while (bj_wire_next(in, &field)) {
        switch (field.id) {
        case 1: chunk->type = bj_wire_int32(in, field); break;
        case 4: chunk->codec = bj_wire_int32(in, field); break;
        case 5: chunk->values = bj_wire_int(in, field); break;
        case 7: chunk->size = bj_wire_int(in, field); break;
        case 9: data = bj_wire_int(in, field); break;
        case 11: dictionary = bj_wire_int(in, field); break;
        default: bj_wire_skip(in, field.type);
        }
    }
    /* Some writers store 0 if there is no dictionary. */
    chunk->offset = dictionary > 0 && dictionary < data ? dictionary : data;
    chunk->obstacle = NULL;
}

static void parse_chunk(bj_chunk *chunk, bj_wire *in) {
    bj_wire_field field = {0};
    int external = 0, encrypted = 0;
    size_t size;
    *chunk = (bj_chunk){.type = -1, .obstacle = "a chunk without metadata"};
    while (bj_wire_next(in, &field)) {
        switch (field.id) {
        case 1:
            bj_wire_binary(&size, in, field);
            external = size > 0;
            break;
        case 3:
            if (bj_wire_is_struct(in, field)) parse_chunk_metadata(chunk, in);
            break;
        case 8:
        case 9: encrypted = 1; /* fall through */
        default: bj_wire_skip(in, field.type);
        }
    }
    if (external) chunk->obstacle = "data in another file";
    if (encrypted) chunk->obstacle = "encryption";
}

static bj_status parse_group(parser *p, int group) {
    bj_footer *out = p->out;
    bj_chunk *chunks = out->chunks + (size_t)group * (size_t)out->chunks_each;
    bj_wire_field field = {0};
    int64_t rows = -1;
    size_t count = 0;
    while (bj_wire_next(&p->in, &field)) {
        if (field.id == 1) {
            count = bj_wire_structs(&p->in, field);
            if (count != (size_t)out->chunks_each) break;
            for (size_t i = 0; i < count; i++) parse_chunk(&chunks[i], &p->in);
        } else if (field.id == 3) {
            rows = bj_wire_int(&p->in, field);
        } else {
            bj_wire_skip(&p->in, field.type);
        }
    }
    if (p->in.bad) return BJ_OK;
    if (count != (size_t)out->chunks_each)
        return REFUSE(p, "%s: row group %d has %zu columns, but the schema has %d", p->label, group,
                      count, out->chunks_each);
    if (rows < 0)
        return REFUSE(p, "%s: row group %d has %lld rows", p->label, group, (long long)rows);
    out->group_rows[group] = rows;
    return BJ_OK;
}

static bj_status parse_groups(parser *p, bj_wire_field field) {
    bj_footer *out = p->out;
    const size_t count = bj_wire_structs(&p->in, field);
    const size_t left = (size_t)(p->in.end - p->in.at);
    /* Every chunk needs at least one byte. Check the count first, because it determines the size of
     * the allocation. */
    if (count > INT_MAX || (out->chunks_each && count > left / (size_t)out->chunks_each))
        return REFUSE(p, "%s: %zu row groups of %d columns do not fit in the footer", p->label,
                      count, out->chunks_each);
    BJ_TRY(BJ_STORE(out->group_rows, p->store, count, p->err));
    BJ_TRY(BJ_STORE(out->chunks, p->store, count * (size_t)out->chunks_each, p->err));
    int64_t sum = 0;
    for (size_t i = 0; i < count && !p->in.bad; i++) {
        BJ_TRY(parse_group(p, (int)i));
        if (p->in.bad) break;
        if (out->group_rows[i] > INT64_MAX - sum)
            return REFUSE(p, "%s: the row groups have more than 2^63 rows", p->label);
        sum += out->group_rows[i];
    }
    out->groups = (int)count;
    if (!p->in.bad && sum != out->rows)
        return REFUSE(p, "%s: the row groups have %lld rows, but the file header has %lld",
                      p->label, (long long)sum, (long long)out->rows);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------- the file itself
 */

static bj_status parse_facts(parser *p, bj_wire_field field) {
    bj_footer *out = p->out;
    const size_t count = bj_wire_structs(&p->in, field);
    if (count > INT_MAX) return REFUSE(p, "%s: %zu metadata entries", p->label, count);
    out->facts = 0;
    BJ_TRY(BJ_STORE(out->keys, p->store, count, p->err));
    BJ_TRY(BJ_STORE(out->values, p->store, count, p->err));
    for (size_t i = 0; i < count && !p->in.bad; i++) {
        const char *key = "", *value = "";
        size_t key_size = 0, value_size = 0;
        bj_wire_field part = {0};
        while (bj_wire_next(&p->in, &part)) {
            if (part.id == 1) key = bj_wire_binary(&key_size, &p->in, part);
            else if (part.id == 2) value = bj_wire_binary(&value_size, &p->in, part);
            else bj_wire_skip(&p->in, part.type);
        }
        BJ_TRY(copy_text(&out->keys[i], p, key, key_size, 1));
        BJ_TRY(copy_text(&out->values[i], p, value, value_size, 0));
        out->facts++;
    }
    return BJ_OK;
}

static bj_status parse_file(parser *p) {
    bj_footer *out = p->out;
    bj_wire groups = {0};
    bj_wire_field field = {0}, groups_field = {0};
    out->rows = -1;
    while (bj_wire_next(&p->in, &field)) {
        size_t size;
        switch (field.id) {
        case 2: BJ_TRY(parse_schema(p, field)); break;
        case 3: out->rows = bj_wire_int(&p->in, field); break;
        case 4: /* parsed last, because it needs the schema */
            groups = p->in;
            groups_field = field;
            bj_wire_skip(&p->in, field.type);
            break;
        case 5: BJ_TRY(parse_facts(p, field)); break;
        case 6: {
            const char *text = bj_wire_binary(&size, &p->in, field);
            BJ_TRY(copy_text(&out->created_by, p, text, size, 1));
            break;
        }
        default: bj_wire_skip(&p->in, field.type);
        }
    }
    if (p->in.bad) return BJ_OK;
    if (!out->columns) return REFUSE(p, "%s: the footer has no schema", p->label);
    if (out->rows < 0)
        return REFUSE(p, "%s: the footer has %lld rows", p->label, (long long)out->rows);
    if (!groups.at) return REFUSE(p, "%s: the footer has no row groups", p->label);
    p->in = groups;
    return parse_groups(p, groups_field);
}

bj_status bj_footer_read(bj_footer *footer, bj_store *store, const uint8_t *file, size_t size,
                         const char *label, bj_error *err) {
    parser p = {.out = footer, .store = store, .label = label, .err = err};
    *footer = (bj_footer){0};
    if (size < 12 || memcmp(file, "PAR1", 4))
        return REFUSE(&p, "%s: not a Parquet file: it does not begin with PAR1", label);
    if (!memcmp(file + size - 4, "PARE", 4))
        return BJ_FAIL(err, BJ_EVERSION, "%s: an encrypted footer is not supported", label);
    if (memcmp(file + size - 4, "PAR1", 4))
        return REFUSE(&p, "%s: truncated: it does not end with PAR1", label);
    const uint8_t *end = file + size - 8;
    const uint32_t length = end[0] | end[1] << 8 | end[2] << 16 | (uint32_t)end[3] << 24;
    if (length > size - 12)
        return REFUSE(&p, "%s: the footer has %lu bytes, but the file has only %zu", label,
                      (unsigned long)length, size);
    p.in = (bj_wire){.at = end - length, .end = end};
    BJ_TRY(parse_file(&p));
    if (p.in.bad) return REFUSE(&p, "%s: damaged footer: %s", label, p.in.bad);
    return BJ_OK;
}
