/* schedule.c - the learning rate of a step and the paper's optimizer settings. */
#include <math.h>

#include <branchjepa/branchjepa.h>

bj_optim bj_optim_default(void) {
    return (bj_optim){
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2, .clip = 5, .ema = 0.996};
}

double bj_lr_at(long step, long steps_per_epoch, int epochs, int warmup, double base) {
    const double pi = 3.14159265358979323846;
    const double rise = (double)warmup * (double)steps_per_epoch;
    const double total = (double)epochs * (double)steps_per_epoch, at = (double)step;
    if (at < rise) return base * (at + 1) / rise;
    return base * 0.5 * (1 + cos(pi * (at - rise) / (total - rise)));
}
