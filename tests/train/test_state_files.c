/* test_state_files.c - tests the file operations of checkpoint folders.
 *
 * A killed writer must not lose data, unrelated files must not be touched,
 * and a failed save must leave no files behind.
 */
#define _DEFAULT_SOURCE /* ptrace, flock, system call numbers */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "core/alloc.h"
#include "core/file.h"
#include "train/state_case.h"

/* --------------------------------------------------------------------------------------- folder */

static void not_saved(const run *r, const char *dir, bj_status code, const char *message) {
    bj_error err = {0};
    const int before = count_entries(folder);
    const bj_status status = bj_trainer_save(r->trainer, dir, &r->rng, NULL, 0, &err);
    CHECK_MSG(status == code && err.code == code, "%s: %s", bj_status_name(status), err.message);
    CHECK_CONTAINS(err.message, message);
    CHECK(count_entries(folder) == before);
}

static void test_refused_saves(run *r) {
    bj_error err = {0};
    const char *dir = in_folder("ck");
    const char *print = print_of(r);
    bj_tensor t;
    save(r, dir);
    CHECK_OK(bj_model_find(&t, r->model, "atoms.2.2.bias", &err), err);
    struct {
        bj_real *value;
        double bad;
        bj_status code;
        const char *message;
    } cases[] = {
        {t.data + 5, HUGE_VAL, BJ_ENONFINITE,
         "ck/model.safetensors: not saved: tensor 'atoms.2.2.bias': value 5 is inf"},
        {r->trainer->mean + 1, HUGE_VAL, BJ_ENONFINITE,
         "ck/state.safetensors: not saved: tensor 'mean.encoder.gru.weight_ih_l0': value 1 is inf"},
        {r->trainer->target_weights, HUGE_VAL, BJ_ENONFINITE,
         "tensor 'target.gru.weight_ih_l0': value 0 is inf"},
        {r->trainer->variance + 2, -1, BJ_EFORMAT,
         "tensor 'variance.encoder.gru.weight_ih_l0': value 2 is -1, expected at least 0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_real kept = *cases[i].value;
        *cases[i].value = (bj_real)cases[i].bad;
        not_saved(r, dir, cases[i].code, cases[i].message);
        *cases[i].value = kept;
    }
    const bj_rng zero = {{0, 0, 0, 0}};
    CHECK(bj_trainer_save(r->trainer, dir, &zero, NULL, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the generator was never seeded");
    static const bj_fact taken[] = {{"latent", "6"}};
    CHECK(bj_trainer_save(r->trainer, dir, NULL, taken, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "metadata 'latent' is given twice");
    CHECK(count_entries(folder) == 1);

    /* Test a disk that becomes full after the first file or within it. */
    struct rlimit old, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        struct stat info;
        CHECK(stat(in_folder("ck/" BJ_CHECKPOINT_MODEL), &info) == 0);
        small = old;
        small.rlim_cur = (rlim_t)(i ? info.st_size + 100 : 100);
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
        not_saved(r, dir, BJ_EIO,
                  i ? "state.safetensors: cannot write: File too large"
                    : "model.safetensors: cannot write: File too large");
        CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
    }
    signal(SIGXFSZ, handler);

    CHECK_OK(bj_file_write(in_folder("file"), "x", 1, &err), err);
    not_saved(r, in_folder("file"), BJ_EIO, "file: cannot replace: Not a directory");
    not_saved(r, in_folder("file/ck"), BJ_EIO, "file/ck: cannot create: Not a directory");
    not_saved(r, in_folder("none/ck"), BJ_EIO, "none/ck: cannot open the directory: No such file");
    not_saved(r, in_folder("ck/."), BJ_EIO, "cannot create: no folder name given");
    not_saved(r, "/", BJ_EIO, "/: cannot ");
    CHECK(symlink("nowhere", in_folder("link")) == 0);
    not_saved(r, in_folder("link"), BJ_EIO, "cannot create: broken symbolic link");
    CHECK(remove(in_folder("link")) == 0 && remove(in_folder("file")) == 0);
    char name[260];
    memset(name, 'n', sizeof name);
    name[230] = '\0';
    not_saved(r, in_folder(name), BJ_EIO, "cannot create: File name too long");

    /* A folder that contains other files must not be replaced. */
    CHECK_OK(bj_file_write(in_folder("ck/notes"), "x", 1, &err), err);
    not_saved(r, dir, BJ_EIO,
              "ck: cannot be replaced, because it contains 'notes', which would be lost");
    CHECK(is_there(in_folder("ck/notes")) && remove(in_folder("ck/notes")) == 0);
    load(r, dir);
    CHECK(!strcmp(print, print_of(r)));
}

static void test_folder(run *r) {
    bj_error err = {0};
    /* Links are followed, trailing slashes are ignored, permissions are
     * kept, and empty folders are replaced. */
    CHECK(symlink("ck", in_folder("link")) == 0 && chmod(in_folder("ck"), 0710) == 0);
    save(r, in_folder("link"));
    save(r, in_folder("link///"));
    struct stat info;
    CHECK(lstat(in_folder("link"), &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(lstat(in_folder("ck"), &info) == 0 && (info.st_mode & 0777) == 0710);
    CHECK(count_entries(folder) == 2);
    load(r, in_folder("link/"));
    CHECK(remove(in_folder("link")) == 0);
    CHECK(mkdir(in_folder("empty"), 0777) == 0);
    save(r, in_folder("empty"));
    load(r, in_folder("empty"));
    remove_tree(in_folder("empty"));
    int here = open(".", O_RDONLY | O_DIRECTORY);
    CHECK(here >= 0 && chdir(folder) == 0);
    save(r, "relative");
    save(r, "relative");
    load(r, "relative");
    remove_tree("relative");
    CHECK(fchdir(here) == 0 && close(here) == 0 && count_entries(folder) == 1);

    /* Leftover folders are removed. Folders with similar names and the
     * folder of a running writer stay. */
    static const char *const made[] = {".ck.123-0.tmp", ".ck.99-12.tmp", ".ck.-1.tmp",
                                       ".ck.1-1.tmpx",  ".ckx1-1.tmp",   ".ck.7-7.tmp",
                                       ".ck.5-5.tmp"};
    for (int i = 0; i < 7; i++) {
        char path[300];
        CHECK(mkdir(in_folder(made[i]), 0777) == 0);
        snprintf(path, sizeof path, "%s/.model.safetensors.1-0.tmp", in_folder(made[i]));
        CHECK_OK(bj_file_write(path, "x", 1, &err), err);
        snprintf(path, sizeof path, "%s/state.safetensors", in_folder(made[i]));
        CHECK_OK(bj_file_write(path, "x", 1, &err), err);
    }
    CHECK_OK(bj_file_write(in_folder(".ck.5-5.tmp/notes"), "x", 1, &err), err);
    const int lock = open(in_folder(".ck.7-7.tmp"), O_RDONLY | O_DIRECTORY);
    CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
    save(r, in_folder("ck"));
    CHECK(!is_there(in_folder(made[0])) && !is_there(in_folder(made[1])));
    for (int i = 2; i < 6; i++) CHECK(count_entries(in_folder(made[i])) == 2);
    CHECK(count_entries(in_folder(made[6])) == 1); /* the `notes` file */
    CHECK(close(lock) == 0);
    save(r, in_folder("ck"));
    CHECK(!is_there(in_folder(made[5])) && count_entries(in_folder("ck")) == 2);
    for (int i = 2; i < 7; i++) remove_tree(in_folder(made[i]));

    /* Test the state between two renames, on file systems that cannot exchange folders. */
    CHECK(rename(in_folder("ck"), in_folder(".ck.old")) == 0);
    load(r, in_folder("ck"));
    CHECK(!is_there(in_folder("ck")));
    const bj_real kept = r->model->weights[0];
    r->model->weights[0] = (bj_real)NAN; /* rejected before the folder is accessed */
    CHECK(bj_trainer_save(r->trainer, in_folder("ck"), &r->rng, NULL, 0, &err) == BJ_ENONFINITE);
    r->model->weights[0] = kept;
    load(r, in_folder("ck/"));
    save(r, in_folder("ck"));
    CHECK(!is_there(in_folder(".ck.old")) && count_entries(folder) == 1);
    CHECK(mkdir(in_folder(".ck.old"), 0777) == 0); /* left by a writer killed after the renames */
    save(r, in_folder("ck"));
    CHECK(!is_there(in_folder(".ck.old")) && count_entries(folder) == 1);
    load(r, in_folder("ck"));
}

/* -------------------------------------------------------------------------------------- kill -9 */

/* Makes RENAME_EXCHANGE fail in this process, as on file systems without support for it. */
static int forbid_exchange(void) {
#if defined(__linux__) && defined(SYS_renameat2)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), /* a plain rename */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
    return 0;
#endif
}

/* Digests of the two versions of a checkpoint after loading. */
static struct {
    run version[2], reader;
    char print[2][BJ_SHA256_HEX];
} kills;

/* Returns the version of the checkpoint in `dir`, or -1 if there is none. Any other content is a
 * failure. */
static int version_at(const char *dir) {
    bj_error err = {0};
    kills.reader.rng = bj_rng_seed(0);
    const bj_status status = bj_trainer_load(kills.reader.trainer, dir, &kills.reader.rng, &err);
    if (status == BJ_EIO && !is_there(dir)) return -1;
    CHECK_MSG(status == BJ_OK, "%s", err.message);
    const char *print = print_of(&kills.reader);
    for (int i = 0; i < 2; i++)
        if (!strcmp(print, kills.print[i])) return i;
    CHECK_MSG(0, "a mixture was loaded");
    return 0;
}

static int save_version(int version, const char *dir) {
    const run *r = &kills.version[version];
    return bj_trainer_save(r->trainer, dir, &r->rng, NULL, 0, NULL) == BJ_OK;
}

/* Runs a writer and kills it after its n-th system call. Returns 1 if the writer finished before
 * that, or -1 if this machine does not allow tracing. */
static int kill_after(int n, int version, const char *dir, int fallback) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (fallback && !forbid_exchange()) _exit(3);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(2);
        raise(SIGSTOP);
        _exit(save_version(version, dir) ? 0 : 1);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) return -1;
    /* There are two stops per call, before and after it. A process killed
     * at the first stop does not start the call. */
    for (int stop = 0; stop < 2 * n; stop++) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) || waitpid(child, &status, 0) != child) break;
        if (WIFEXITED(status)) {
            CHECK(WEXITSTATUS(status) == 0);
            return 1;
        }
    }
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
}

/* Returns 1 if the file system of the scratch folder can exchange two folders. */
static int can_exchange(void) {
    int done = 0;
#ifdef SYS_renameat2
    CHECK(mkdir(in_folder("a"), 0700) == 0 && mkdir(in_folder("b"), 0700) == 0);
    done = syscall(SYS_renameat2, AT_FDCWD, in_folder("a"), AT_FDCWD, in_folder("b"), 2) == 0;
    CHECK(rmdir(in_folder("a")) == 0 && rmdir(in_folder("b")) == 0);
#endif
    return done;
}

/* State of the folder before a writer is killed. */
enum { NOTHING, CHECKPOINT, MOVED_ASIDE /* by a writer killed between two renames */ };

/* Tests killing the writer after every system call of a save. Each attempt starts from the same
 * state, because leftover files would shift the sequence of calls, and a call could be skipped. */
static void test_kill_everywhere(int start, int fallback) {
    char dir[128], aside[128];
    snprintf(dir, sizeof dir, "%s/killed", folder);
    snprintf(aside, sizeof aside, "%s/.killed.old", folder);
    const int stays = start == CHECKPOINT && !fallback && can_exchange();
    int seen[3] = {0, 0, 0}, finished = 0, n = 0;
    for (; !finished && n < 2000; n++) {
        remove_tree(folder);
        CHECK(mkdir(folder, 0700) == 0);
        if (start != NOTHING) CHECK(save_version(0, dir));
        if (start == MOVED_ASIDE) CHECK(rename(dir, aside) == 0);
        const int before = version_at(dir), other = before == 0;
        finished = kill_after(n, other, dir, fallback);
        if (finished < 0) {
            printf("state_files: skipped, because %s a writer is not possible here\n",
                   fallback ? "filtering the system calls of" : "tracing");
            return;
        }
        const int after = version_at(dir);
        CHECK_MSG(after == before || after == other, "killed after %d calls: %d, before %d", n,
                  after, before);
        CHECK_MSG(!finished || after == other, "finished, but the old version is still there");
        CHECK_MSG(!stays || is_there(dir), "killed after %d calls: not in its place", n);
        seen[1 + after]++;
    }
    CHECK_MSG(n > 40 && n < 2000, "%d system calls", n);
    CHECK(start == NOTHING ? seen[0] && seen[2] == 0 : seen[0] == 0 && seen[1] && seen[2]);
    CHECK(seen[1]);
    CHECK(save_version(0, dir) && version_at(dir) == 0);
    CHECK_MSG(count_entries(folder) == 1, "leftovers were not removed");
    CHECK(count_entries(dir) == 2);
    remove_tree(dir);
}

/* Tests a process that saves repeatedly and is killed at random times. Leftover files
 * accumulate. */
static void test_kill_anytime(int fallback) {
    const char *dir = in_folder("killed");
    bj_rng rng = bj_rng_seed(3);
    CHECK(save_version(0, dir));
    for (int i = 0; i < 12; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            if (fallback && !forbid_exchange()) _exit(3);
            for (int version = 0;; version = !version)
                if (!save_version(version, dir)) _exit(1);
        }
        const struct timespec moment = {0, (long)(bj_rng_uniform(&rng) * 2e7)};
        nanosleep(&moment, NULL);
        int status = 0;
        CHECK(child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
        if (fallback && WIFEXITED(status) && WEXITSTATUS(status) == 3) return;
        CHECK_MSG(WIFSIGNALED(status), "the writer failed");
        CHECK(version_at(dir) >= 0);
    }
    CHECK(save_version(1, dir) && version_at(dir) == 1 && count_entries(folder) == 1);
    remove_tree(dir);
}

static void test_kills(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(BJ_FULLSET, 1);
    for (int i = 0; i < 2; i++) {
        kills.version[i] = run_create(&arch, &options, (uint64_t)i);
        advance(&kills.version[i], 1 + i);
        snprintf(kills.print[i], sizeof kills.print[i], "%s", print_of(&kills.version[i]));
    }
    kills.reader = run_create(&arch, &options, 9);
    test_kill_everywhere(NOTHING, 0); /* exchange is not used here */
    test_kill_everywhere(CHECKPOINT, 0);
    test_kill_everywhere(CHECKPOINT, 1);
    test_kill_everywhere(MOVED_ASIDE, 1);
    test_kill_anytime(0);
    test_kill_anytime(1);
    run_free(&kills.version[0]);
    run_free(&kills.version[1]);
    run_free(&kills.reader);
}

int main(void) {
    const long live = bj_alloc_live();
    case_begin("/dev/shm", "/tmp"); /* use memory instead of a disk, because the tests save hundreds
                                       of times */
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(BJ_FULLSET, 1);
    run r = run_create(&arch, &options, 1);
    advance(&r, 2);
    test_refused_saves(&r);
    test_folder(&r);
    run_free(&r);
    test_kills();
    case_end();
    CHECK(bj_alloc_live() == live);
    return test_report("state_files");
}
