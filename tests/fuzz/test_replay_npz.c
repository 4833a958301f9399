/* test_replay_npz.c - runs the fuzz target of the NumPy archive reader without a fuzzer.
 *
 * With the argument FOLDER, writes the corpus there.
 */
#include "fuzz_npz.c"

#include "npz/npz_case.h"
#include "support/mutate.h"

/* Repairs the directory offset, which is 16 bytes into the end record, if bytes before it were
 * added. */
static void repair(uint8_t *file, size_t size, size_t at, ptrdiff_t grown) {
    if (size < 22 || memcmp(file + size - 22, "PK\5\6", 4)) return;
    uint8_t *place = file + size - 6;
    size_t directory = 0;
    for (int i = 0; i < 4; i++) directory |= (size_t)place[i] << 8 * i;
    if (directory == 0xffffffff || at > directory) return;
    directory += (size_t)grown;
    for (int i = 0; i < 4; i++) place[i] = (uint8_t)(directory >> 8 * i);
}

static void write_seed(npz_maker *m, const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    npz_write(m, path);
}

static void write_corpus(const char *folder) {
    static const float f4[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t bits[9] = {0, 0, 1, 0, 0, 1, 0, 0, 1};
    static const int64_t i8[2] = {-1, 1};
    uint8_t frames[2 * 48];
    npz_maker m = {0};
    for (int i = 0; i < 96; i++) frames[i] = (uint8_t)(i / 5);
    npz_add(&m, "observations", "<f4", "(3, 2)", f4, sizeof f4, NPZ_STORED);
    npz_add(&m, "terminals", "|b1", "(9,)", bits, sizeof bits, NPZ_STORED);
    write_seed(&m, folder, "stored.npz");
    npz_add(&m, "frames", "|u1", "(2, 4, 4, 3)", frames, sizeof frames, NPZ_DEFLATED);
    npz_add(&m, "step", "<i8", "(2,)", i8, sizeof i8, NPZ_DEFLATED);
    write_seed(&m, folder, "deflated.npz");
    m.zip64 = 1;
    npz_add_header(&m, "x", "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 1), }", 2, f4,
                   sizeof f4, NPZ_DEFLATED, &(npz_lie){.zip64 = 1});
    write_seed(&m, folder, "zip64.npz");
    npz_add(&m, "one", "<f8", "()", i8, 8, NPZ_STORED);
    npz_add(&m, "none", "<i4", "(0, 3)", "", 0, NPZ_DEFLATED);
    npz_add(&m, "text", "<U2", "(3,)", f4, sizeof f4, NPZ_STORED);
    npz_add_raw(&m, "note.txt", "hello", 5, NPZ_STORED, NULL);
    m.comment = "a remark";
    write_seed(&m, folder, "odd.npz");
    npz_add_header(&m, "x", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 1, f4,
                   sizeof f4, NPZ_DEFLATED, &(npz_lie){.crc = 1});
    npz_add_header(&m, "y", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", 1, f4,
                   sizeof f4, NPZ_STORED, NULL);
    npz_add_header(&m, "z", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 1, f4,
                   sizeof f4, NPZ_DEFLATED, &(npz_lie){.flags = 1});
    write_seed(&m, folder, "refused.npz");
}

int main(int argc, char **argv) {
    if (argc > 1) {
        write_corpus(argv[1]);
        return 0;
    }
    static const mutate_fragment fragments[] = {FRAGMENT("0"),
                                                FRAGMENT("1"),
                                                FRAGMENT("9"),
                                                FRAGMENT("(3, 2)"),
                                                FRAGMENT("()"),
                                                FRAGMENT(","),
                                                FRAGMENT(")"),
                                                FRAGMENT("}"),
                                                FRAGMENT("'"),
                                                FRAGMENT(" "),
                                                FRAGMENT("True"),
                                                FRAGMENT("|u1"),
                                                FRAGMENT("<f8"),
                                                FRAGMENT("<i4"),
                                                FRAGMENT(">f4"),
                                                FRAGMENT("9223372036854775807"),
                                                FRAGMENT("\x93NUMPY\1\0"),
                                                FRAGMENT("\x93NUMPY\2\0"),
                                                FRAGMENT("PK\1\2"),
                                                FRAGMENT("PK\3\4"),
                                                FRAGMENT("PK\5\6"),
                                                FRAGMENT("PK\6\6"),
                                                FRAGMENT("PK\6\7"),
                                                FRAGMENT(".npy"),
                                                FRAGMENT("\0"),
                                                FRAGMENT("\1"),
                                                FRAGMENT("\10\0"),
                                                FRAGMENT("\xff"),
                                                FRAGMENT("\xff\xff"),
                                                FRAGMENT("\xff\xff\xff\xff"),
                                                FRAGMENT("\0\0\0\0")};
    return mutate_replay(&(mutate_target){.name = "npz",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 20000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .repair = repair,
                                          .least = 100,
                                          .most = 900});
}
