/* npy.c - see npy.h. Test: tests/npz/test_npz.c */
#include "npz/npy.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npy.c copies little-endian data as it is"
#endif

static const struct {
    const char *name, *descr;
    size_t size;
} types[BJ_NPY_TYPES] = {{"float32", "f4", 4}, {"float64", "f8", 8}, {"int32", "i4", 4},
                         {"int64", "i8", 8},   {"uint8", "u1", 1},   {"bool", "b1", 1}};

size_t bj_npy_size(bj_npy_type type) { return types[type].size; }
const char *bj_npy_name(bj_npy_type type) { return types[type].name; }

bj_status bj_npy_prefix(size_t *length, size_t *text, const uint8_t *prefix, const char *what,
                        bj_error *err) {
    if (memcmp(prefix, "\x93NUMPY", 6))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: does not begin with the .npy signature", what);
    const int major = prefix[6];
    if (major < 1 || major > 3 || prefix[7])
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the .npy version is %d.%d, expected 1.0, 2.0 or 3.0", what,
                       major, prefix[7]);
    size_t size = (size_t)prefix[8] | (size_t)prefix[9] << 8;
    if (major > 1) size |= (size_t)prefix[10] << 16 | (size_t)prefix[11] << 24;
    *text = major > 1 ? 12 : 10;
    if (size < 2 || size > BJ_NPY_MAX_HEADER)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the .npy header has %zu bytes, expected 2 to %d", what,
                       size, (int)BJ_NPY_MAX_HEADER);
    *length = *text + size;
    return BJ_OK;
}

/* --------------------------------------------------------------------------------- dictionary */

typedef struct scan {
    const char *at, *end, *what;
    bj_error *err;
} scan;

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_blanks(scan *s) {
    while (s->at < s->end && is_blank(*s->at)) s->at++;
}

/* Skips blanks. If the next character is c, skips it as well and returns 1. */
static int take(scan *s, char c) {
    skip_blanks(s);
    if (s->at == s->end || *s->at != c) return 0;
    s->at++;
    return 1;
}

static bj_status malformed(const scan *s, const char *expected) {
    char shown[24] = "";
    size_t n = 0;
    for (const char *p = s->at; p < s->end && n + 1 < sizeof shown; p++)
        shown[n++] = *p >= ' ' && *p < 127 ? *p : '?';
    return BJ_FAIL(s->err, BJ_EFORMAT, "%s: .npy header has '%s', expected %s", s->what, shown,
                   expected);
}

/* Reads a string in single or double quotes. Escape sequences are not supported. */
static bj_status read_text(scan *s, char *out, size_t room, const char *expected) {
    skip_blanks(s);
    const char quote = s->at < s->end ? *s->at : '\0';
    if (quote != '\'' && quote != '"') return malformed(s, expected);
    const char *begin = s->at + 1, *p = begin;
    while (p < s->end && *p != quote && *p != '\\' && *p >= ' ') p++;
    if (p == s->end || *p != quote || (size_t)(p - begin) >= room) return malformed(s, expected);
    memcpy(out, begin, (size_t)(p - begin));
    out[p - begin] = '\0';
    s->at = p + 1;
    return BJ_OK;
}

static bj_status read_type(bj_npy *out, scan *s) {
    char text[32];
    skip_blanks(s);
    if (s->at < s->end && (*s->at == '[' || *s->at == '('))
        return BJ_FAIL(s->err, BJ_EFORMAT,
                       "%s: found records with several fields, expected plain numbers", s->what);
    BJ_TRY(read_text(s, text, sizeof text, "the type of its numbers"));
    const char order = text[0], *kind = text + (order && strchr("<>|=", order) ? 1 : 0);
    for (int t = 0; t < BJ_NPY_TYPES; t++) {
        if (strcmp(kind, types[t].descr)) continue;
        if (order == '>' && types[t].size > 1)
            return BJ_FAIL(s->err, BJ_EFORMAT,
                           "%s: found big-endian numbers ('%s'), expected '<%s'", s->what, text,
                           types[t].descr);
        if (kind == text || (order != '<' && types[t].size > 1)) break;
        out->type = (bj_npy_type)t;
        return BJ_OK;
    }
    if (kind[0] == 'O')
        return BJ_FAIL(s->err, BJ_EFORMAT, "%s: found Python objects ('%s'), expected numbers",
                       s->what, text);
    return BJ_FAIL(s->err, BJ_EFORMAT,
                   "%s: the type is '%s', expected float32, float64, int32, int64, uint8 or bool",
                   s->what, text);
}

static bj_status read_order(int *fortran, scan *s) {
    skip_blanks(s);
    const size_t left = (size_t)(s->end - s->at);
    *fortran = left >= 4 && !memcmp(s->at, "True", 4);
    if (!*fortran && (left < 5 || memcmp(s->at, "False", 5)))
        return malformed(s, "True or False for 'fortran_order'");
    s->at += *fortran ? 4 : 5;
    return BJ_OK;
}

static bj_status read_size(int64_t *out, scan *s) {
    skip_blanks(s);
    const char *begin = s->at;
    *out = 0;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++) {
        if (*out > (INT64_MAX - 9) / 10) return malformed(s, "a size below 2^63");
        *out = *out * 10 + (*s->at - '0');
    }
    if (s->at == begin) return malformed(s, "a size");
    if (s->at < s->end && *s->at == 'L') s->at++; /* suffix of Python 2 */
    return BJ_OK;
}

static bj_status read_shape(bj_npy *out, scan *s) {
    if (!take(s, '(')) return malformed(s, "a tuple for 'shape'");
    for (out->rank = 0; !take(s, ')');) {
        if (out->rank == BJ_NPY_RANK)
            return BJ_FAIL(s->err, BJ_EFORMAT, "%s: more than %d dimensions", s->what,
                           (int)BJ_NPY_RANK);
        BJ_TRY(read_size(&out->shape[out->rank++], s));
        if (take(s, ',')) continue;
        skip_blanks(s);
        if (s->at == s->end || *s->at != ')' || out->rank == 1) /* (3) is not a tuple */
            return malformed(s, "',' or ')' in 'shape'");
    }
    return BJ_OK;
}

/* Computes rows, width and row_bytes. Fails if a partial product overflows, even if a dimension is
 * 0. */
static bj_status measure(bj_npy *out, scan *s) {
    int64_t all = (int64_t)bj_npy_size(out->type);
    out->rows = out->rank ? out->shape[0] : 1;
    out->width = 1;
    for (int d = 0; d < out->rank; d++) {
        const int64_t n = out->shape[d];
        if (n && all > INT64_MAX / n)
            return BJ_FAIL(s->err, BJ_EFORMAT, "%s: its shape has more than 2^63 bytes", s->what);
        all *= n ? n : 1;
        if (d) out->width *= n;
    }
    out->row_bytes = (size_t)out->width * bj_npy_size(out->type);
    return BJ_OK;
}

bj_status bj_npy_parse(bj_npy *out, const char *text, size_t size, const char *what,
                       bj_error *err) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    enum { DESCR, ORDER, SHAPE, KEYS };
    scan s = {text, text + size, what, err};
    int seen[KEYS] = {0}, fortran = 0;
    *out = (bj_npy){0};
    if (!take(&s, '{')) return malformed(&s, "a dictionary");
    while (!take(&s, '}')) {
        char key[32];
        int k = 0;
        BJ_TRY(read_text(&s, key, sizeof key, "a key"));
        while (k < KEYS && strcmp(key, keys[k])) k++;
        if (k == KEYS || seen[k]++)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: .npy header has key '%s' %s", what, key,
                           k == KEYS ? "that is not known" : "twice");
        if (!take(&s, ':')) return malformed(&s, "':'");
        if (k == DESCR) BJ_TRY(read_type(out, &s));
        else if (k == ORDER) BJ_TRY(read_order(&fortran, &s));
        else BJ_TRY(read_shape(out, &s));
        skip_blanks(&s);
        if (!take(&s, ',') && (s.at == s.end || *s.at != '}')) return malformed(&s, "',' or '}'");
    }
    skip_blanks(&s);
    if (s.at != s.end) return malformed(&s, "nothing after the dictionary");
    for (int k = 0; k < KEYS; k++)
        if (!seen[k]) return BJ_FAIL(err, BJ_EFORMAT, "%s: .npy header lacks '%s'", what, keys[k]);
    if (fortran && out->rank > 1) /* for rank 1, both orders are the same */
        return BJ_FAIL(err, BJ_EFORMAT, "%s: found Fortran order, expected C order", what);
    return measure(out, &s);
}

/* -------------------------------------------------------------------------------------- numbers */

#define CONVERT(ctype, target)                                                                     \
    for (size_t i = 0; i < count; i++) {                                                           \
        ctype value;                                                                               \
        memcpy(&value, p + i * sizeof value, sizeof value);                                        \
        out[i] = (target)value;                                                                    \
    }                                                                                              \
    break

#define CONVERT_ALL(target)                                                                        \
    const unsigned char *p = raw;                                                                  \
    switch (type) {                                                                                \
    case BJ_NPY_F32: CONVERT(float, target);                                                       \
    case BJ_NPY_F64: CONVERT(double, target);                                                      \
    case BJ_NPY_I32: CONVERT(int32_t, target);                                                     \
    case BJ_NPY_I64: CONVERT(int64_t, target);                                                     \
    case BJ_NPY_U8: CONVERT(uint8_t, target);                                                      \
    default:                                                                                       \
        for (size_t i = 0; i < count; i++) out[i] = (target)(p[i] != 0);                           \
    }

void bj_npy_doubles(double *out, const void *raw, bj_npy_type type, size_t count) {
    CONVERT_ALL(double)
}

void bj_npy_reals(bj_real *out, const void *raw, bj_npy_type type, size_t count) {
    CONVERT_ALL(bj_real)
}
