/* schedule.c - learning-rate schedules and the paper's optimizer settings.
 * Test: tests/train/test_step.c
 */
#include <math.h>
#include <string.h>

#include <branchjepa/branchjepa.h>

bj_optim bj_optim_default(void) {
    return (bj_optim){
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2, .clip = 5, .ema = 0.996};
}

int bj_schedule_find(const char *name) {
    static const char *const names[] = {"cosine", "linear", "trapezoid", "constant"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

double bj_lr_at(const bj_schedule *s, long step) {
    const double pi = 3.14159265358979323846;
    const double rise = (double)s->warmup, total = (double)s->updates, at = (double)step;
    if (at < rise) return s->base * (at + 1) / rise;
    const double left = (total - at) / (total - rise);
    switch (s->kind) {
    case BJ_SCHEDULE_LINEAR: return s->base * left;
    case BJ_SCHEDULE_TRAPEZOID: return s->base * fmin(1, (total - at) / (s->decay * total));
    case BJ_SCHEDULE_CONSTANT: return s->base;
    default: return s->base * 0.5 * (1 + cos(pi * (at - rise) / (total - rise)));
    }
}
