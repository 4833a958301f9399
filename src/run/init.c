/* init.c - see init.h. */
#include "run/init.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/alloc.h"
#include "model/checkpoint.h"
#include "model/future_encoder.h"
#include "run/run.h"

/* ---------------------------------------------------------------------------------------- parts */

static const char *const part_names[BJ_PARTS] = {
    [BJ_PART_ENCODER] = "encoder", [BJ_PART_ATOMS] = "branches",    [BJ_PART_ROUTER] = "router",
    [BJ_PART_DECODER] = "decoder", [BJ_PART_RESIDUAL] = "residual", [BJ_PART_SCALE_Z] = "scale_z",
    [BJ_PART_SCALE_Y] = "scale_y", [BJ_PART_INPUT] = "input"};

const char *bj_part_name(int part) { return part_names[part]; }

/* Returns the part with this name of `length` characters, or BJ_PARTS if there is none. */
static int find_part(const char *name, size_t length) {
    for (int part = 0; part < BJ_PARTS; part++)
        if (strlen(part_names[part]) == length && !strncmp(part_names[part], name, length))
            return part;
    return BJ_PARTS;
}

bj_status bj_init_check_parts(const char *parts, const char *origin, bj_error *err) {
    for (const char *at = parts; *at;) {
        const size_t length = strcspn(at, ",");
        if (find_part(at, length) == BJ_PARTS || (at[length] && !at[length + 1]))
            return BJ_FAIL(err, BJ_EARG,
                           "%s: init_parts is '%s', expected comma-separated names: encoder, "
                           "branches, router, decoder, residual, scale_z, scale_y, input",
                           origin, parts);
        at += length + (at[length] == ',');
    }
    return BJ_OK;
}

/* Returns 1 if the setting lists this part. An empty setting stands for all parts. */
static int is_listed(const char *parts, int part) {
    if (!*parts) return 1;
    for (const char *at = parts; *at;) {
        const size_t length = strcspn(at, ",");
        if (find_part(at, length) == part) return 1;
        at += length + (at[length] == ',');
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------- match */

typedef struct matching {
    const char *path, *parts;
    bj_model *model;
    const bj_model *source;
    bj_init *out;
} matching;

/* Returns the tensor of the checkpoint with that name, or NULL. */
static const bj_param *find_param(const bj_layout *layout, const char *name) {
    for (int i = 0; i < layout->count; i++)
        if (!strcmp(layout->params[i].name, name)) return &layout->params[i];
    return NULL;
}

/* Skip codes, because they are fitted to the data before every evaluation. */
static int is_codes(const matching *m, int index) {
    return index == m->model->layout.first[BJ_P_CODES];
}

static const char *shape_text(char text[32], const bj_param *p) {
    if (p->rank == 1) snprintf(text, 32, "[%d]", p->shape[0]);
    else snprintf(text, 32, "[%d, %d]", p->shape[0], p->shape[1]);
    return text;
}

enum { REASON = sizeof((bj_init_note *)NULL)->reason };

/* Returns the first tensor of a part that is missing in the checkpoint or has another shape there,
 * and sets `reason`. Returns NULL if the whole part matches. */
static const bj_param *find_mismatch(char reason[REASON], const matching *m, int part) {
    const bj_layout *layout = &m->model->layout;
    for (int i = 0; i < layout->count; i++) {
        const bj_param *p = &layout->params[i];
        char found[32], expected[32];
        if ((int)p->part != part || is_codes(m, i)) continue;
        const bj_param *from = find_param(&m->source->layout, p->name);
        if (from && from->rank == p->rank && from->shape[0] == p->shape[0] &&
            from->shape[1] == p->shape[1])
            continue;
        if (from)
            snprintf(reason, REASON, "the checkpoint has shape %s, expected %s",
                     shape_text(found, from), shape_text(expected, p));
        else snprintf(reason, REASON, "the checkpoint has no such tensor");
        return p;
    }
    return NULL;
}

static int must_match(const matching *m, int part) {
    const bj_arch *a = &m->model->arch, *b = &m->source->arch;
    if (*m->parts) return 1;
    switch (part) {
    case BJ_PART_ENCODER:
    case BJ_PART_DECODER:
    case BJ_PART_INPUT: return 1;
    case BJ_PART_SCALE_Z:
    case BJ_PART_SCALE_Y: return 0;
    default: return a->kind == b->kind && (a->atoms > 1) == (b->atoms > 1);
    }
}

/* Lists the settings that would give the model the same sizes as the checkpoint. */
static void list_sizes(char *text, size_t size, const matching *m) {
    bj_arch_facts found, expected;
    bj_error err;
    if (bj_arch_to_facts(&found, &m->source->arch, &err) != BJ_OK ||
        bj_arch_to_facts(&expected, &m->model->arch, &err) != BJ_OK)
        return;
    for (int i = 0, n = 0; i < found.count && i < expected.count && n < (int)size; i++) {
        char key[64];
        snprintf(key, sizeof key, "model.%s", found.fact[i].key);
        if (bj_setting_find(key) < 0 || !strcmp(found.fact[i].value, expected.fact[i].value))
            continue;
        n += snprintf(text + n, size - (size_t)n, " --set %s=%s", key, found.fact[i].value);
    }
}

/* Lists the parts that match, separated by commas. The list is empty if the encoder does not match.
 * */
static void list_parts(char *text, size_t size, const matching *m) {
    char reason[REASON];
    if (find_mismatch(reason, m, BJ_PART_ENCODER)) return;
    for (int part = 0, n = 0; part < BJ_PARTS; part++) {
        int tensors = 0;
        for (int i = 0; i < m->model->layout.count; i++)
            tensors += (int)m->model->layout.params[i].part == part;
        if (tensors && !find_mismatch(reason, m, part))
            n += snprintf(text + n, size - (size_t)n, "%s%s", n ? "," : "", part_names[part]);
    }
}

/* Reports the tensor that does not match, and suggests settings. */
static bj_status reject(const matching *m, const char *what, const char *reason, bj_error *err) {
    char sizes[160] = "", parts[96] = "";
    list_sizes(sizes, sizeof sizes, m);
    list_parts(parts, sizeof parts, m);
    return BJ_FAIL(err, BJ_EMISMATCH, "%.160s: %s: %s%s%s%s%s%s", m->path, what, reason,
                   *sizes || *parts ? "\nhint:" : "",
                   *sizes ? " use the sizes of the checkpoint with" : "", sizes,
                   *parts ? *sizes ? ", or load only the matching parts with --set init_parts="
                                   : " load only the matching parts with --set init_parts="
                          : "",
                   parts);
}

static void keep(const matching *m, const bj_param *p, const char *reason) {
    bj_init_note *note = &m->out->kept[m->out->kept_count++];
    note->part = p->part;
    snprintf(note->tensor, sizeof note->tensor, "%s", p->name);
    snprintf(note->reason, sizeof note->reason, "%s", reason);
}

static bj_status load_part(matching *m, int part, bj_error *err) {
    const bj_layout *layout = &m->model->layout;
    char reason[REASON] = "not among init_parts";
    int good = is_listed(m->parts, part);
    if (good) {
        const bj_param *wrong = find_mismatch(reason, m, part);
        if (wrong && must_match(m, part)) {
            char what[BJ_PARAM_NAME + 16];
            snprintf(what, sizeof what, "tensor '%s'", wrong->name);
            return reject(m, what, reason, err);
        }
        if (wrong) {
            char why[REASON];
            snprintf(why, sizeof why, "%s", reason);
            snprintf(reason, sizeof reason, "%s: %.80s", wrong->name, why);
        }
        good = !wrong;
    }
    for (int i = 0; i < layout->count; i++) {
        const bj_param *p = &layout->params[i];
        if ((int)p->part != part) continue;
        if (!good || is_codes(m, i)) {
            keep(m, p, good ? "fitted to the data" : reason);
            continue;
        }
        const bj_param *from = find_param(&m->source->layout, p->name);
        memcpy(m->model->weights + p->offset, m->source->weights + from->offset,
               p->size * sizeof(bj_real));
        m->out->loaded++;
        m->out->part[part]++;
    }
    return BJ_OK;
}

/* Compares the encoder properties that cannot be seen from the shapes of its tensors. */
static bj_status check_encoder(const matching *m, bj_error *err) {
    const bj_arch *a = &m->source->arch, *b = &m->model->arch;
    const struct {
        const char *what;
        double found, expected;
    } values[] = {
        {"encoder (0: scenes, 1: states, 2: images)", a->encoder, b->encoder},
        {"model.heads", a->heads, b->heads},
        {"model.waves", a->waves, b->waves},
        {"model.octaves", a->octaves, b->octaves},
        {"image rows", a->height, b->height},
        {"image columns", a->width, b->width},
        {"seconds between steps", a->dt, b->dt},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].found != values[i].expected) {
            char reason[REASON];
            snprintf(reason, sizeof reason, "the checkpoint has %g, expected %g", values[i].found,
                     values[i].expected);
            return reject(m, values[i].what, reason, err);
        }
    return BJ_OK;
}

static bj_status load_weights(matching *m, bj_error *err) {
    const bj_layout *from = &m->source->layout;
    m->out->count = m->model->layout.count;
    BJ_TRY(BJ_ALLOC(m->out->kept, (size_t)m->model->layout.count, err));
    BJ_TRY(BJ_ALLOC(m->out->unused, (size_t)from->count, err));
    if (is_listed(m->parts, BJ_PART_ENCODER)) BJ_TRY(check_encoder(m, err));
    for (int part = 0; part < BJ_PARTS; part++) BJ_TRY(load_part(m, part, err));
    for (int i = 0; i < from->count; i++) {
        if (find_param(&m->model->layout, from->params[i].name)) continue;
        bj_init_note *note = &m->out->unused[m->out->unused_count++];
        note->part = from->params[i].part;
        snprintf(note->tensor, sizeof note->tensor, "%s", from->params[i].name);
        snprintf(note->reason, sizeof note->reason, "the model has no such tensor");
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- target */

/* Loads the target encoder stored next to a model file. *out stays NULL if there is none, or if the
 * user named the model file instead of its folder. */
static bj_status find_target(bj_target **out, const char *path, const char *named, bj_error *err) {
    char folder[4096], state[4096 + 32];
    bj_facts *facts;
    *out = NULL;
    if (!strcmp(path, named)) return BJ_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    snprintf(state, sizeof state, "%s/" BJ_CHECKPOINT_STATE, folder);
    if (!bj_file_exists(state)) return BJ_OK;
    BJ_TRY(bj_facts_read(&facts, path, err));
    const char *arm = bj_facts_get(facts, "run.arm");
    const int stage_a = arm && !strcmp(arm, "anchor-a");
    bj_facts_free(facts);
    return stage_a ? BJ_OK : bj_target_load(out, folder, err);
}

/* Sets the target encoder to that of the checkpoint, or else to the online encoder. */
static bj_status set_target(bj_init *out, const matching *m, bj_trainer *trainer,
                            const bj_target *target, bj_error *err) {
    const bj_layout *layout = &m->model->layout;
    bj_tensor *tensors;
    int count = 0;
    out->checkpoint_target = target && out->part[BJ_PART_ENCODER] > 0;
    BJ_TRY(BJ_ALLOC(tensors, (size_t)layout->count, err));
    for (int i = 0; i < layout->count; i++) {
        const bj_param *p = &layout->params[i];
        if (p->part != BJ_PART_ENCODER) continue;
        const bj_tensor to = bj_trainer_target(trainer, i);
        const bj_real *from = m->model->weights + p->offset;
        if (out->checkpoint_target)
            from = target->weights + find_param(&m->source->layout, p->name)->offset;
        memcpy(to.data, from, p->size * sizeof(bj_real));
        tensors[count++] = to;
    }
    const bj_status status = bj_checkpoint_digest(out->target_sha256, tensors, count, err);
    bj_free(tensors);
    return status;
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_init_pin(bj_settings *s, bj_error *err) {
    char path[4096], found[BJ_SHA256_HEX];
    if (!s->init[0]) return BJ_OK;
    BJ_TRY(bj_model_path(path, sizeof path, s->init, err));
    BJ_TRY(bj_sha256_file(found, path, err));
    if (s->init_sha256[0] && strcmp(s->init_sha256, found))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the SHA-256 is %s, expected %s (init_sha256)\n"
                       "hint: the file was replaced; give the path of the original checkpoint",
                       path, found, s->init_sha256);
    memcpy(s->init_sha256, found, sizeof found);
    return BJ_OK;
}

bj_status bj_init_recall(bj_settings *s, const char *dir, bj_error *err) {
    char path[BJ_RUN_FILE];
    bj_config *began;
    if (!s->init[0] || s->init_sha256[0]) return BJ_OK;
    BJ_TRY(bj_run_path(path, dir, "config.resolved.json", err));
    BJ_TRY(bj_config_read(&began, path, err));
    const char *found = bj_config_get(began, "init_sha256");
    snprintf(s->init_sha256, sizeof s->init_sha256, "%s", found ? found : "");
    bj_config_free(began);
    return BJ_OK;
}

bj_status bj_init_load(bj_init *out, bj_model *model, bj_trainer *trainer, const bj_settings *s,
                       bj_error *err) {
    bj_model *source = NULL;
    bj_target *target = NULL;
    bj_status status;
    BJ_TRY(bj_model_path(out->file, sizeof out->file, s->init, err));
    BJ_TRY(bj_model_load(&source, out->file, err));
    matching m = {out->file, s->init_parts, model, source, out};
    BJ_GOTO(status, done, load_weights(&m, err));
    BJ_GOTO(status, done, find_target(&target, out->file, s->init, err));
    status = set_target(out, &m, trainer, target, err);
done:
    bj_target_free(target);
    bj_model_free(source);
    return status;
}

void bj_init_reset(bj_init *init) {
    bj_free(init->kept);
    bj_free(init->unused);
    *init = (bj_init){.count = 0};
}

/* -------------------------------------------------------------------------------------- reports */

static void add_notes(bj_doc *doc, yyjson_mut_val *parent, const char *key,
                      const bj_init_note *notes, int count) {
    yyjson_mut_val *list = bj_doc_list(doc, parent, key);
    for (int i = 0; i < count; i++) {
        yyjson_mut_val *item = bj_doc_item(doc, list);
        bj_doc_add_text(doc, item, "tensor", notes[i].tensor);
        bj_doc_add_text(doc, item, "reason", notes[i].reason);
    }
}

void bj_init_add(bj_doc *doc, yyjson_mut_val *root, const bj_init *init, const bj_settings *s) {
    yyjson_mut_val *j = bj_doc_child(doc, root, "init");
    bj_doc_add_text(doc, j, "path", s->init);
    bj_doc_add_text(doc, j, "file", init->file);
    bj_doc_add_text(doc, j, "sha256", s->init_sha256);
    bj_doc_add_text(doc, j, "target", init->checkpoint_target ? "checkpoint" : "online encoder");
    bj_doc_add_text(doc, j, "target_sha256", init->target_sha256);
    bj_doc_add_integer(doc, j, "loaded", init->loaded);
    add_notes(doc, j, "not_loaded", init->kept, init->kept_count);
    add_notes(doc, j, "unused", init->unused, init->unused_count);
}

/* Reports the notes as one line per part. */
static void tell_notes(const bj_run_options *o, const char *what, const bj_init_note *notes,
                       int count) {
    for (int i = 0, end; i < count; i = end) {
        char line[512];
        for (end = i + 1; end < count && notes[end].part == notes[i].part;) end++;
        snprintf(line, sizeof line, "init: part %s %s (tensors: %d): %s", part_names[notes[i].part],
                 what, end - i, notes[i].reason);
        o->note(o->context, line);
    }
}

void bj_init_tell(const bj_init *init, const bj_run_options *o) {
    char line[BJ_RUN_FILE + 512];
    if (!o->note) return;
    int n = snprintf(line, sizeof line, "init: %s: loaded %d of %d tensors:", init->file,
                     init->loaded, init->count);
    for (int part = 0, first = 1; part < BJ_PARTS; part++) {
        if (!init->part[part]) continue;
        n += snprintf(line + n, sizeof line - (size_t)n, "%s %s %d", first ? "" : ",",
                      part_names[part], init->part[part]);
        first = 0;
    }
    snprintf(line + n, sizeof line - (size_t)n, "; target encoder: %s",
             init->checkpoint_target ? "of the checkpoint" : "copy of the online encoder");
    o->note(o->context, line);
    tell_notes(o, "stays at its initialization", init->kept, init->kept_count);
    tell_notes(o, "of the checkpoint is not used", init->unused, init->unused_count);
}
