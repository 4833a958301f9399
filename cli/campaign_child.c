/* campaign_child.c - starts a training process, waits for it and reads its last message.
 *
 * The child runs this program (/proc/self/exe, which works even if the file has been replaced). Its
 * output is appended to log.txt of the run. Its settings are passed in the file settings.json of
 * the run, so they depend neither on environment variables nor on the length of a command line.
 */
#define _DEFAULT_SOURCE /* flock; includes POSIX.1-2008 */
#include "campaign_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { TAIL = 8192 };

/* --------------------------------------------------------------------------------------- folder */

static bj_status make_folders(const char *path, bj_error *err) {
    char part[CLI_PATH_SIZE];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = part + 1;; c++) {
        if (*c && *c != '/') continue;
        const char kept = *c;
        *c = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return cli_error(err, BJ_EIO, "%s: cannot create the folder: %s", part,
                             strerror(errno));
        *c = kept;
        if (!kept) return BJ_OK;
    }
}

/* Returns 1 if a process that we did not start is training in the folder. */
static int trained_by_others(const char *dir) {
    char path[CLI_PATH_SIZE];
    bj_error err;
    if (cli_path(path, dir, ".lock", &err) != BJ_OK) return 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const int busy = flock(file, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(file);
    return busy;
}

/* Without O_CLOEXEC: the child keeps it. */
static bj_status take_lock(int *lock, int *occupied, const char *dir, bj_error *err) {
    char path[CLI_PATH_SIZE];
    const bj_status status = cli_path(path, dir, ".campaign.lock", err);
    if (status != BJ_OK) return status;
    *occupied = 0;
    *lock = open(path, O_RDWR | O_CREAT, 0666);
    if (*lock < 0) return cli_error(err, BJ_EIO, "%s: cannot open: %s", path, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) *occupied = 1;
    if (!*occupied && trained_by_others(dir)) *occupied = 1;
    if (!*occupied) return BJ_OK;
    close(*lock);
    *lock = -1;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- child */

/* After the fork, only system calls are made, and the environment is our own copy. */
static void become(char **arguments, int log, pid_t parent) {
    static const char *const settings[] = {"BJEPA_ARM", "BJEPA_SEED", "BJEPA_RECIPE", "BJEPA_SET",
                                           "BJEPA_DEV", "BJEPA_DATA", "BJEPA_CONFIG", "BJEPA_INIT",
                                           "BJEPA_EXTEND"};
    const int nothing = open("/dev/null", O_RDONLY);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != parent) _exit(CLI_SIGNALED + SIGTERM); /* it was gone before */
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
    if (log > STDERR_FILENO) close(log);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) unsetenv(settings[i]);
    execv("/proc/self/exe", arguments);
    execvp(arguments[0], arguments); /* where there is no /proc */
    static const char message[] = "bjepa campaign: cannot start bjepa train\n";
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(126);
    _exit(127);
}

static bj_status launch(campaign_child *child, const bj_campaign *campaign,
                        const bj_campaign_run *run, const char *settings, int threads,
                        bj_error *err) {
    char number[16], *arguments[20], program[] = "bjepa";
    const char *list[] = {"train",
                          "--data",
                          run->data,
                          "--config",
                          settings,
                          "--out",
                          run->dir,
                          "--resume",
                          "--quiet",
                          "--threads",
                          number,
                          "--dev",
                          bj_campaign_dev(campaign)};
    const int count = 11 + 2 * (bj_campaign_dev(campaign) != NULL);
    snprintf(number, sizeof number, "%d", threads);
    arguments[0] = program;
    for (int i = 0; i < count; i++) arguments[i + 1] = (char *)(uintptr_t)list[i]; /* execv's way */
    arguments[count + 1] = NULL;
    const int log = open(child->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct stat info;
    if (log < 0 || fstat(log, &info)) {
        const int reason = errno;
        if (log >= 0) close(log);
        return cli_error(err, BJ_EIO, "%s: cannot open: %s", child->log, strerror(reason));
    }
    child->log_begin = (long)info.st_size;
    const pid_t parent = getpid();
    fflush(NULL); /* or the child would have it too */
    child->pid = fork();
    if (child->pid == 0) become(arguments, log, parent);
    const int reason = errno;
    close(log);
    if (child->pid > 0) return BJ_OK;
    child->pid = 0;
    return cli_error(err, BJ_ENOMEM, "cannot start a process: %s", strerror(reason));
}

bj_status campaign_child_start(campaign_child *child, int *occupied, const bj_campaign *campaign,
                               const bj_campaign_run *run, int threads, bj_error *err) {
    char settings[CLI_PATH_SIZE];
    int lock = -1;
    bj_status status = make_folders(run->dir, err);
    if (status == BJ_OK) status = take_lock(&lock, occupied, run->dir, err);
    if (status != BJ_OK || *occupied) return status;
    status = cli_path(settings, run->dir, "settings.json", err);
    if (status == BJ_OK) status = cli_path(child->log, run->dir, "log.txt", err);
    if (status == BJ_OK) status = bj_settings_write(run->settings, settings, err);
    if (status == BJ_OK) status = launch(child, campaign, run, settings, threads, err);
    close(lock);
    return status;
}

/* ------------------------------------------------------------------------------------------ end */

void campaign_child_signal(const campaign_child *child, int number) {
    if (child->pid > 0) kill(child->pid, number);
}

/* Returns the last line "bjepa train: ..." of this attempt, without this prefix, or else the last
 * line that is not empty. */
static void last_words(char last[256], const campaign_child *child) {
    char text[TAIL + 1], *said = NULL;
    static const char prefix[] = "bjepa train: ";
    *last = '\0';
    FILE *file = fopen(child->log, "rb");
    if (!file) return;
    long begin = child->log_begin;
    if (!fseek(file, 0, SEEK_END) && ftell(file) - begin > TAIL) begin = ftell(file) - TAIL;
    size_t size = fseek(file, begin, SEEK_SET) ? 0 : fread(text, 1, TAIL, file);
    fclose(file);
    text[size] = '\0';
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        const int ours = !strncmp(line, prefix, sizeof prefix - 1);
        if (said && !ours && !strncmp(said, prefix, sizeof prefix - 1)) continue; /* a hint */
        if (line[strspn(line, " \t")]) said = line;
    }
    if (!said) return;
    if (!strncmp(said, prefix, sizeof prefix - 1)) said += sizeof prefix - 1;
    snprintf(last, 256, "%.255s", said);
}

int campaign_child_ended(campaign_child *child, int *code, char last[256]) {
    int status;
    const pid_t pid = waitpid(child->pid, &status, WNOHANG);
    if (pid == 0 || (pid < 0 && errno == EINTR)) return 0;
    *code = CLI_FAILED;
    if (pid > 0 && WIFEXITED(status)) *code = WEXITSTATUS(status);
    if (pid > 0 && WIFSIGNALED(status)) *code = CLI_SIGNALED + WTERMSIG(status);
    last_words(last, child);
    if (pid > 0 && WIFSIGNALED(status))
        snprintf(last, 256, "ended by signal %d%s", WTERMSIG(status),
                 WTERMSIG(status) == SIGKILL ? ": killed, possibly because memory ran out" : "");
    child->pid = 0;
    return 1;
}
