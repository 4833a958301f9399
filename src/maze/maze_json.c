/* maze_json.c - see maze_json.h. */
#include "maze/maze_json.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/sha256.h"

/* ------------------------------------------------------------------------------------- reading */

bj_status bj_maze_json_open(yyjson_doc **out, const char *path, const char *schema, bj_error *err) {
    char *text = NULL;
    size_t size;
    *out = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, BJ_MAZE_JSON_LIMIT, err));
    const bj_status status = bj_maze_json_parse(out, text, size, path, schema, err);
    bj_free(text);
    return status;
}

bj_status bj_maze_json_parse(yyjson_doc **out, const char *text, size_t size, const char *path,
                             const char *schema, bj_error *err) {
    *out = NULL;
    BJ_TRY(bj_json_parse(out, text, size, path, err));
    yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(*out), "schema");
    const char *found = yyjson_get_str(value);
    if (yyjson_equals_str(value, schema)) return BJ_OK;
    const bj_status status =
        BJ_FAIL(err, found ? BJ_EVERSION : BJ_EFORMAT, "%s: schema is '%.60s', expected '%s'", path,
                found ? found : "missing", schema);
    yyjson_doc_free(*out);
    *out = NULL;
    return status;
}

static int is_known(const char *key, size_t length, const char *known) {
    while (*known) {
        const size_t n = strcspn(known, " ");
        if (n == length && !memcmp(known, key, n)) return 1;
        known += n + (known[n] == ' ');
    }
    return 0;
}

bj_status bj_maze_json_members(yyjson_val *value, const char *known, const char *where,
                               bj_error *err) {
    yyjson_obj_iter walk;
    yyjson_val *key;
    if (!yyjson_obj_iter_init(value, &walk))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s, expected an object", where,
                       value ? yyjson_get_type_desc(value) : "missing");
    while ((key = yyjson_obj_iter_next(&walk))) {
        const char *name = yyjson_get_str(key);
        if (!is_known(name, yyjson_get_len(key), known))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: unknown member '%.60s', expected %s", where, name,
                           known);
        if (yyjson_obj_getn(value, name, yyjson_get_len(key)) != yyjson_obj_iter_get_val(key))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.60s' occurs twice", where, name);
    }
    return BJ_OK;
}

static bj_status refuse(bj_error *err, const char *where, const char *key, yyjson_val *found,
                        const char *expected) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' is %s, expected %s", where, key,
                   found ? yyjson_get_type_desc(found) : "missing", expected);
}

bj_status bj_maze_json_text(const char **out, yyjson_val *object, const char *key,
                            const char *where, bj_error *err) {
    yyjson_val *value = yyjson_obj_get(object, key);
    *out = yyjson_get_str(value);
    if (!*out || !**out || strlen(*out) != yyjson_get_len(value))
        return refuse(err, where, key, value, "a non-empty string");
    return BJ_OK;
}

bj_status bj_maze_json_integer(int64_t *out, yyjson_val *value, int64_t least, int64_t most,
                               const char *what, const char *where, bj_error *err) {
    if (!yyjson_is_int(value))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is %s, expected an integer", where, what,
                       value ? yyjson_get_type_desc(value) : "missing");
    if (yyjson_is_sint(value) ? yyjson_get_sint(value) < least || yyjson_get_sint(value) > most
                              : yyjson_get_uint(value) > (uint64_t)most ||
                                    (least > 0 && yyjson_get_uint(value) < (uint64_t)least))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s is out of range, expected %lld to %lld", where,
                       what, (long long)least, (long long)most);
    *out = yyjson_get_sint(value);
    return BJ_OK;
}

static bj_status read_row(int32_t *out, yyjson_val *row, int width, int32_t most, const char *key,
                          int number, const char *where, bj_error *err) {
    char what[96];
    if (!yyjson_is_arr(row) || yyjson_arr_size(row) != (size_t)width)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: '%s' row %d has type %s and length %zu, "
                       "expected a list of length %d",
                       where, key, number, yyjson_get_type_desc(row), yyjson_get_len(row), width);
    for (int k = 0; k < width; k++) {
        int64_t number_k = 0;
        snprintf(what, sizeof what, "'%.40s' row %d number %d", key, number, k);
        BJ_TRY(bj_maze_json_integer(&number_k, yyjson_arr_get(row, (size_t)k), 0, most, what, where,
                                    err));
        out[k] = (int32_t)number_k;
    }
    return BJ_OK;
}

bj_status bj_maze_json_rows(int32_t **out, int *count, yyjson_val *object, const char *key,
                            int width, int32_t most, int limit, const char *where, bj_error *err) {
    yyjson_val *list = yyjson_obj_get(object, key), *row;
    yyjson_arr_iter walk;
    int n = 0;
    *out = NULL;
    *count = 0;
    if (list && !yyjson_is_arr(list)) return refuse(err, where, key, list, "a list");
    const size_t size = list ? yyjson_arr_size(list) : 0;
    if (size > (size_t)limit)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: '%s' has %zu rows, expected at most %d", where, key,
                       size, limit);
    BJ_TRY(BJ_ALLOC(*out, size * (size_t)width, err));
    if (size) {
        yyjson_arr_iter_init(list, &walk);
        for (; (row = yyjson_arr_iter_next(&walk)); n++) {
            const bj_status status =
                read_row(*out + (size_t)n * (size_t)width, row, width, most, key, n, where, err);
            if (status == BJ_OK) continue;
            bj_free(*out);
            *out = NULL;
            return status;
        }
    }
    *count = n;
    return BJ_OK;
}

/* Reads the walls (rows,cols) from the strings in "map". */
static bj_status read_map(uint8_t **out, int *rows, int *cols, yyjson_val *object,
                          const char *where, bj_error *err) {
    yyjson_val *list = yyjson_obj_get(object, "map");
    bj_status status = BJ_OK;
    *out = NULL;
    *rows = (int)yyjson_arr_size(list);
    *cols = (int)yyjson_get_len(yyjson_arr_get_first(list));
    if (!yyjson_is_arr(list) || *rows < 1 || *rows > 1024 || *cols < 1 || *cols > 1024)
        return refuse(err, where, "map", list,
                      "1 to 1024 strings of 1 to 1024 digits, in which 1 is a wall");
    BJ_TRY(BJ_ALLOC(*out, (size_t)*rows * (size_t)*cols, err));
    for (int i = 0; i < *rows && status == BJ_OK; i++) {
        yyjson_val *row = yyjson_arr_get(list, (size_t)i);
        const char *text = yyjson_get_str(row);
        if (!text || yyjson_get_len(row) != (size_t)*cols || strspn(text, "01") != (size_t)*cols)
            status = BJ_FAIL(err, BJ_EFORMAT,
                             "%s: 'map' row %d is '%.40s', expected %d digits that are 0 or 1",
                             where, i, text ? text : yyjson_get_type_desc(row), *cols);
        for (int j = 0; j < *cols && status == BJ_OK; j++) (*out)[i * *cols + j] = text[j] == '1';
    }
    if (status != BJ_OK) {
        bj_free(*out);
        *out = NULL;
    }
    return status;
}

bj_status bj_maze_json_read(bj_maze **out, yyjson_val *object, int without_schema,
                            const char *where, bj_error *err) {
    int32_t *ins = NULL, *outs = NULL, *tasks = NULL;
    uint8_t *walls = NULL;
    bj_maze_plan plan = {0};
    bj_error inner = {BJ_OK, ""};
    bj_status status;
    *out = NULL;
    BJ_TRY(bj_maze_json_members(object,
                                without_schema ? "name map teleporters exits tasks"
                                               : "schema name map teleporters exits tasks",
                                where, err));
    BJ_TRY(bj_maze_json_text(&plan.name, object, "name", where, err));
    for (int i = 0; bj_maze_name(i); i++)
        if (!strcmp(bj_maze_name(i), plan.name))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: 'name' is '%s', "
                           "which is the name of an official maze",
                           where, plan.name);
    BJ_GOTO(status, done, read_map(&walls, &plan.rows, &plan.cols, object, where, err));
    BJ_GOTO(status, done,
            bj_maze_json_rows(&ins, &plan.in_count, object, "teleporters", 2, 1023,
                              BJ_MAZE_MAX_PORTS, where, err));
    BJ_GOTO(status, done,
            bj_maze_json_rows(&outs, &plan.out_count, object, "exits", 2, 1023, BJ_MAZE_MAX_PORTS,
                              where, err));
    BJ_GOTO(status, done,
            bj_maze_json_rows(&tasks, &plan.task_count, object, "tasks", 4, 1023, BJ_MAZE_MAX_TASKS,
                              where, err));
    plan.walls = walls;
    plan.ins = ins;
    plan.outs = outs;
    plan.tasks = tasks;
    status = bj_maze_from_plan(out, &plan, &inner);
    if (status == BJ_EARG) status = BJ_EFORMAT; /* the file is invalid, not the argument */
    if (status != BJ_OK) BJ_FAIL(err, status, "%s: %.300s", where, inner.message);
done:
    bj_free(walls);
    bj_free(ins);
    bj_free(outs);
    bj_free(tasks);
    return status;
}

/* ------------------------------------------------------------------------------------- writing */

/* Appends [i, j, ...] to a list. */
static void add_row(bj_doc *doc, yyjson_mut_val *list, const int32_t *numbers, int count) {
    yyjson_mut_val *row = doc->ok ? yyjson_mut_arr_add_arr(doc->json, list) : NULL;
    doc->ok = doc->ok && row;
    for (int k = 0; k < count; k++) bj_doc_item_integer(doc, row, numbers[k]);
}

void bj_maze_json_add_edges(bj_doc *doc, yyjson_mut_val *object, const char *key,
                            const bj_edge *edges, int count) {
    yyjson_mut_val *list = bj_doc_list(doc, object, key);
    for (int k = 0; k < count; k++)
        add_row(doc, list, (const int32_t[]){edges[k].from, edges[k].to}, 2);
}

static void add_squares(bj_doc *doc, yyjson_mut_val *object, const char *key, const bj_maze *maze,
                        const int32_t *cells, int count) {
    yyjson_mut_val *list = bj_doc_list(doc, object, key);
    for (int k = 0; k < count; k++) add_row(doc, list, maze->square + 2 * cells[k], 2);
}

void bj_maze_json_add(bj_doc *doc, yyjson_mut_val *object, const bj_maze *m) {
    char row[1025];
    bj_doc_add_text(doc, object, "name", m->name);
    yyjson_mut_val *map = bj_doc_list(doc, object, "map");
    for (int i = 0; i < m->rows; i++) {
        for (int j = 0; j < m->cols; j++) row[j] = m->cell_at[i * m->cols + j] < 0 ? '1' : '0';
        row[m->cols] = '\0';
        bj_doc_item_text(doc, map, row);
    }
    add_squares(doc, object, "teleporters", m, m->ins, m->in_count);
    add_squares(doc, object, "exits", m, m->outs, m->out_count);
    yyjson_mut_val *tasks = bj_doc_list(doc, object, "tasks");
    for (int k = 0; k < m->task_count; k++) {
        const int32_t *a = m->square + 2 * m->tasks[k].from, *b = m->square + 2 * m->tasks[k].to;
        add_row(doc, tasks, (const int32_t[]){a[0], a[1], b[0], b[1]}, 4);
    }
}

bj_status bj_maze_json_commit(bj_doc *doc, const char *path, char hex[65], bj_error *err) {
    char *text;
    size_t size;
    bj_status status = bj_doc_text(&text, &size, doc, 0, NULL);
    if (status == BJ_EARG)
        return BJ_FAIL(err, BJ_EARG, "%s: not written: a string in it is not UTF-8", path);
    if (status != BJ_OK) return BJ_FAIL(err, status, "%s: not written: out of memory", path);
    if (hex) bj_sha256_memory(hex, text, size);
    status = bj_file_write(path, text, size, err);
    bj_free(text);
    return status;
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_maze_save(const char *path, const bj_maze *maze, bj_error *err) {
    bj_doc doc;
    for (int i = 0; bj_maze_name(i); i++)
        if (!strcmp(bj_maze_name(i), maze->name))
            return BJ_FAIL(err, BJ_EARG, "%s: not written: '%s' is the name of an official maze",
                           path, maze->name);
    BJ_TRY(bj_doc_begin(&doc, "branchjepa.maze/1", err));
    bj_maze_json_add(&doc, doc.root, maze);
    return bj_maze_json_commit(&doc, path, NULL, err);
}

bj_status bj_maze_open(bj_maze **out, const char *name_or_path, bj_error *err) {
    yyjson_doc *doc;
    *out = NULL;
    if (!strpbrk(name_or_path, "./")) return bj_maze_create(out, name_or_path, err);
    BJ_TRY(bj_maze_json_open(&doc, name_or_path, "branchjepa.maze/1", err));
    const bj_status status = bj_maze_json_read(out, yyjson_doc_get_root(doc), 0, name_or_path, err);
    yyjson_doc_free(doc);
    return status;
}
