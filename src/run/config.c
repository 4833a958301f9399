/* config.c - reads a YAML or JSON file as a flat list of assignments.
 *
 *   optim:            optim.lr = 3e-4     FILE:2
 *     lr: 3e-4        seeds.0 = 0         FILE:3
 *   seeds: [0, 1]     seeds.1 = 1         FILE:3
 *
 * libyaml splits the text into events. Its type detection is not used, so values stay as they are
 * written. Ambiguous input is rejected: anchors, aliases and tags, repeated keys, values that are
 * missing or null, more than one document. "a.b: 1" and "a: {b: 1}" are the same key.
 *
 * Invariants
 *   1. Bytes, depth, nodes and key lengths are checked against their limits before they are stored.
 *   2. Rejected text gives BJ_EARG, and the message starts with file and line.
 *   3. An accepted JSON file has the same meaning as for a JSON reader.
 *   4. libyaml has no allocator hook, so it does not use core/alloc.h. All of its
 *      memory is released before bj_config_parse returns.
 * Tests: tests/run/test_config.c, tests/fuzz/fuzz_config.c
 */
#include "run/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "core/alloc.h"
#include "core/file.h"

/* An entry with a key. `value` is NULL for mappings and sequences. All strings of an entry are
 * stored in one block. */
typedef struct node {
    char *key, *value, *origin;
    size_t line;
} node;

struct bj_config {
    int nodes, values;
    node node[BJ_CONFIG_NODES];
    bj_assignment value[BJ_CONFIG_NODES];
};

/* A mapping or sequence that is being parsed. */
typedef struct level {
    int is_mapping;
    int has_key;   /* mappings: 1 if a key has been read, so the next event is its value */
    int items;     /* number of items of a sequence so far */
    size_t prefix; /* length of the prefix of `key` that names this level */
} level;

typedef struct reader {
    yaml_parser_t parser;
    const char *name;
    bj_config *config;
    char key[BJ_CONFIG_KEY_SIZE];
    level levels[BJ_CONFIG_DEPTH];
    int depth;
    int documents;
} reader;

/* ---------------------------------------------------------------------------------------- nodes */

static size_t line_of(const yaml_event_t *event) { return event->start_mark.line + 1; }

static bj_status refuse(const reader *r, size_t line, bj_error *err, const char *fmt, ...)
    BJ_PRINTF(4, 5);

static bj_status refuse(const reader *r, size_t line, bj_error *err, const char *fmt, ...) {
    char text[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return BJ_FAIL(err, BJ_EARG, "%s:%zu: %s", r->name, line, text);
}

/* Stores the entry with the key r->key. */
static bj_status add_node(reader *r, const char *value, size_t line, bj_error *err) {
    bj_config *c = r->config;
    for (int i = 0; i < c->nodes; i++)
        if (!strcmp(c->node[i].key, r->key))
            return refuse(r, line, err, "'%s' occurs twice, first in line %zu", r->key,
                          c->node[i].line);
    if (c->nodes == BJ_CONFIG_NODES)
        return refuse(r, line, err, "more than %d values", (int)BJ_CONFIG_NODES);
    node *n = &c->node[c->nodes];
    const size_t key_size = strlen(r->key) + 1, value_size = value ? strlen(value) + 1 : 0;
    const size_t origin_size = value ? strlen(r->name) + 24 : 0;
    BJ_TRY(BJ_ALLOC(n->key, key_size + value_size + origin_size, err));
    c->nodes++;
    memcpy(n->key, r->key, key_size);
    n->line = line;
    if (!value) return BJ_OK;
    n->value = n->key + key_size;
    memcpy(n->value, value, value_size);
    n->origin = n->value + value_size;
    snprintf(n->origin, origin_size, "%s:%zu", r->name, line);
    c->value[c->values++] = (bj_assignment){n->key, n->value, n->origin};
    return BJ_OK;
}

/* Appends a part to r->key. */
static bj_status extend_key(reader *r, const char *part, size_t line, bj_error *err) {
    const size_t used = r->depth ? r->levels[r->depth - 1].prefix : 0;
    const int size = snprintf(r->key + used, sizeof r->key - used, "%s%s", used ? "." : "", part);
    if (size < 0 || (size_t)size >= sizeof r->key - used)
        return refuse(r, line, err, "the key '%.40s...' has more than %d bytes", r->key,
                      (int)BJ_CONFIG_KEY_SIZE - 1);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- events */

static int is_null(const yaml_event_t *event) {
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp((const char *)event->data.scalar.value, words[i])) return 1;
    return 0;
}

/* Rejects properties that no value may have. */
static bj_status check_marks(const reader *r, const yaml_event_t *event, bj_error *err) {
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse(r, line_of(event), err, "the alias '*%s' is not allowed; write the value out",
                      (const char *)event->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default: break;
    }
    if (anchor)
        return refuse(r, line_of(event), err,
                      "the anchor '&%s' is not allowed; write the values out",
                      (const char *)anchor);
    if (tag)
        return refuse(r, line_of(event), err,
                      "the tag '%s' is not allowed, because the key determines the type",
                      (const char *)tag);
    if (event->type == YAML_SCALAR_EVENT &&
        strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
        return refuse(r, line_of(event), err, "a string contains a zero byte");
    return BJ_OK;
}

/* Handles a scalar that is the key of a mapping. */
static bj_status read_key(reader *r, const yaml_event_t *event, bj_error *err) {
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(r, line_of(event), err, "a key is a mapping or sequence, expected a word");
    const char *word = (const char *)event->data.scalar.value;
    const size_t size = strlen(word);
    if (size == 0 || word[0] == '.' || word[size - 1] == '.' || strstr(word, ".."))
        return refuse(r, line_of(event), err,
                      "the key '%.40s' is empty or has an empty part", word);
    BJ_TRY(extend_key(r, word, line_of(event), err));
    r->levels[r->depth - 1].has_key = 1;
    return BJ_OK;
}

/* Handles a value, or the start of a mapping or sequence. */
static bj_status read_value(reader *r, const yaml_event_t *event, bj_error *err) {
    level *in = r->depth ? &r->levels[r->depth - 1] : NULL;
    const size_t line = line_of(event);
    if (!in && event->type != YAML_MAPPING_START_EVENT)
        return refuse(r, line, err, "expected a mapping, 'key: value'");
    if (in && !in->is_mapping) {
        char item[16];
        snprintf(item, sizeof item, "%d", in->items++);
        BJ_TRY(extend_key(r, item, line, err));
    }
    if (in) in->has_key = 0;
    if (event->type == YAML_SCALAR_EVENT) {
        if (is_null(event)) return refuse(r, line, err, "'%s' has no value", r->key);
        return add_node(r, (const char *)event->data.scalar.value, line, err);
    }
    if (r->depth == BJ_CONFIG_DEPTH)
        return refuse(r, line, err, "'%.40s' is nested deeper than %d", r->key,
                      (int)BJ_CONFIG_DEPTH);
    if (in) BJ_TRY(add_node(r, NULL, line, err));
    r->levels[r->depth++] = (level){.is_mapping = event->type == YAML_MAPPING_START_EVENT,
                                    .prefix = in ? strlen(r->key) : 0};
    return BJ_OK;
}

static bj_status take(reader *r, const yaml_event_t *event, bj_error *err) {
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->documents++)
            return refuse(r, line_of(event), err, "found a second document, expected one");
        return BJ_OK;
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        BJ_TRY(check_marks(r, event, err));
        if (r->depth && r->levels[r->depth - 1].is_mapping && !r->levels[r->depth - 1].has_key)
            return read_key(r, event, err);
        return read_value(r, event, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: r->depth--; return BJ_OK;
    default: return BJ_OK;
    }
}

static bj_status parser_failed(const reader *r, bj_error *err) {
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_MEMORY_ERROR) return BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory", r->name);
    if (p->error == YAML_READER_ERROR)
        return BJ_FAIL(err, BJ_EARG, "%s: not YAML or JSON at byte %zu: %s", r->name,
                       p->problem_offset, problem);
    if (p->context)
        return refuse(r, p->problem_mark.line + 1, err, "not YAML or JSON: %s, %s from line %zu",
                      problem, p->context, p->context_mark.line + 1);
    return refuse(r, p->problem_mark.line + 1, err, "not YAML or JSON: %s", problem);
}

/* YAML treats three more characters as line breaks than JSON, so a string that contains one of them
 * would be changed. */
static bj_status check_breaks(const reader *r, const char *text, size_t size, bj_error *err) {
    size_t line = 1;
    for (size_t i = 0; i + 1 < size; i++) {
        const unsigned char *c = (const unsigned char *)text + i;
        line += *c == '\n';
        if (c[0] == 0xc2 && c[1] == 0x85)
            return refuse(r, line, err, "the line separator U+0085 is not allowed");
        if (i + 2 < size && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
            return refuse(r, line, err, "the line separator U+20%x is not allowed", c[2] - 0x80u);
    }
    return BJ_OK;
}

static bj_status read_events(reader *r, bj_error *err) {
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) return parser_failed(r, err);
        const int last = event.type == YAML_STREAM_END_EVENT;
        const bj_status status = take(r, &event, err);
        yaml_event_delete(&event);
        if (status != BJ_OK || last) return status;
    }
}

/* ------------------------------------------------------------------------------------ interface */

void bj_config_free(bj_config *config) {
    if (!config) return;
    for (int i = 0; i < config->nodes; i++) bj_free(config->node[i].key);
    bj_free(config);
}

int bj_config_count(const bj_config *config) { return config ? config->values : 0; }

bj_assignment bj_config_at(const bj_config *config, int index) {
    return config && index >= 0 && index < config->values ? config->value[index]
                                                          : (bj_assignment){0};
}

const char *bj_config_get(const bj_config *config, const char *key) {
    for (int i = 0; config && key && i < config->values; i++)
        if (!strcmp(config->value[i].key, key)) return config->value[i].value;
    return NULL;
}

bj_status bj_config_parse(bj_config **out, const char *text, size_t size, const char *name,
                          bj_error *err) {
    reader r = {.name = name};
    *out = NULL;
    if (size > BJ_CONFIG_BYTES)
        return BJ_FAIL(err, BJ_EARG, "%s: has %zu bytes, expected at most %d", name, size,
                       (int)BJ_CONFIG_BYTES);
    BJ_TRY(check_breaks(&r, text, size, err));
    if (size >= 3 && !strncmp(text, "\xef\xbb\xbf", 3)) { /* byte order mark of UTF-8 */
        text += 3;
        size -= 3;
    }
    BJ_TRY(BJ_ALLOC(r.config, 1, err));
    if (!yaml_parser_initialize(&r.parser)) {
        bj_config_free(r.config);
        return BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory", name);
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, size);
    const bj_status status = read_events(&r, err);
    yaml_parser_delete(&r.parser);
    if (status == BJ_OK) *out = r.config;
    else bj_config_free(r.config);
    return status;
}

bj_status bj_config_read(bj_config **out, const char *path, bj_error *err) {
    char *text;
    size_t size;
    if (!out || !path) return BJ_FAIL(err, BJ_EARG, "config: output or path is missing");
    *out = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, BJ_CONFIG_BYTES, err));
    const bj_status status = bj_config_parse(out, text, size, path, err);
    bj_free(text);
    return status;
}
