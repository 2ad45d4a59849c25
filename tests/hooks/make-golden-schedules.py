#!/usr/bin/env python3
"""Writes golden-schedules.h: learning rate and momentum of every iteration of short runs, for each policy of
MMCV 1.7 with each warm-up, by epoch and by iteration.

    python3 tests/hooks/make-golden-schedules.py > tests/hooks/golden-schedules.h     (made with torch 1.13)

The formulas are written here as MMCV's documentation has them, one iteration after the other; where torch's
own schedulers mean the same, both must agree before anything is written.
"""
import math
import sys

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, CyclicLR, OneCycleLR

BASE, MOMENTUM = 0.02, 0.9
MULTS = (1.0, 0.1)  # of the two parameter groups
EPOCH_LENGTH, MAX_EPOCHS = 3, 8
TOTAL = EPOCH_LENGTH * MAX_EPOCHS


def cos(start, end, part):
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


def line(start, end, part):
    return (1 - part) * start + part * end


ANNEAL = {"cos": cos, "linear": line}


# ---- policies: f(base, p, P, key=value ...) ----------------------------------------------------------------
def fixed(base, p, P):
    return base


def step(base, p, P, step, gamma, min=None):
    n = p // step if isinstance(step, int) else len([s for s in step if s <= p])
    value = base
    for _ in range(n):
        value *= gamma
    return value if min is None or value > min else min


def exp(base, p, P, gamma):
    return base * math.exp(p * math.log(gamma))


def poly(base, p, P, power=1.0, min_lr=0.0):
    left = (P - p) / P
    return min_lr + (base - min_lr) * left**power


def inv(base, p, P, gamma, power=1.0):
    return base / (1 + gamma * p)**power


def target(base, min, min_ratio):
    assert (min is None) != (min_ratio is None)
    return base * min_ratio if min is None else min


def cosine(base, p, P, min=None, min_ratio=None):
    return cos(base, target(base, min, min_ratio), p / P)


def linear(base, p, P, min=None, min_ratio=None):
    return line(base, target(base, min, min_ratio), p / P)


def flat_cosine(base, p, P, start_percent=0.75, min=None, min_ratio=None):
    start = round(P * start_percent)
    if p < start:
        return base
    return cos(base, target(base, min, min_ratio), (p - start) / (P - start))


def restart(base, p, P, periods, restart_weights, min=None, min_ratio=None):
    end = target(base, min, min_ratio)
    for period, weight in zip(periods, restart_weights):
        if p < period:
            return end + weight * (base - end) * (1 + math.cos(math.pi * p / period)) / 2
        p -= period
    return end


def cyclic(base, p, P, target_ratio, cyclic_times=1, step_ratio_up=0.4, anneal_strategy="cos", gamma=1):
    if len(target_ratio) == 1:
        target_ratio = target_ratio[0], target_ratio[0] / 1e5
    n = P // cyclic_times
    if p >= n * cyclic_times:  # left over
        return base * target_ratio[1]
    cycle, i = divmod(p, n)
    up = int(step_ratio_up * n)
    peak = base + (base * target_ratio[0] - base) * gamma**cycle
    f = ANNEAL[anneal_strategy]
    return f(base, peak, i / up) if i < up else f(peak, base * target_ratio[1], (i - up) / (n - up))


def phases(p, ends, values, f):
    start = 0
    for end, a, b in zip(ends, values, values[1:]):
        if p <= end:
            return f(a, b, (p - start) / (end - start))
        start = end
    return values[-1]


def one_cycle(base, p, P, first, peak, last, total_steps=None, pct_start=0.3, anneal_strategy="cos",
              three_phase=False):
    T = total_steps or P
    ends, values = [pct_start * T - 1, T - 1], [first, peak, last]
    if three_phase:
        ends.insert(1, 2 * pct_start * T - 2)
        values.insert(2, first)
    return phases(p, ends, values, ANNEAL[anneal_strategy])


def one_cycle_lr(base, p, P, max_lr, div_factor=25.0, final_div_factor=1e4, **rest):
    mult = base / BASE
    first = max_lr / div_factor
    return mult * one_cycle(base, p, P, first, max_lr, first / final_div_factor, **rest)


def one_cycle_momentum(base, p, P, base_momentum=0.85, max_momentum=0.95, **rest):
    return one_cycle(base, p, P, max_momentum, base_momentum, max_momentum, **rest)


# ---- warm-up -----------------------------------------------------------------------------------------------
def warm(regular, t, W, kind, ratio, divide):
    if kind is None or t >= W:
        return regular
    if kind == "constant":
        factor = ratio
    elif kind == "linear":
        k = (1 - t / W) * (1 - ratio)
        factor = 1 - k
    else:
        factor = ratio**(1 - t / W)
    return regular / factor if divide else regular * factor


# ---- torch -------------------------------------------------------------------------------------------------
def of_torch(make, n, key="lr", **optim):
    sgd = torch.optim.SGD([torch.zeros(1, requires_grad=True)], **optim)
    scheduler = make(sgd)
    values = []
    for i in range(n):
        values.append(sgd.param_groups[0][key])
        sgd.step()
        if i + 1 < n:
            scheduler.step()
    return values


def agree(ours, theirs, what):
    for i, (a, b) in enumerate(zip(ours, theirs)):
        assert abs(a - b) <= 1e-9 * abs(b), (what, i, a, b)


def check_torch():
    values = of_torch(lambda o: CosineAnnealingLR(o, TOTAL, eta_min=1e-4), TOTAL, lr=BASE)
    agree([cosine(BASE, p, TOTAL, min=1e-4) for p in range(TOTAL)], values, "cosine")
    for three in (False, True):
        for shape in ("cos", "linear"):
            rest = dict(pct_start=0.35, anneal_strategy=shape, three_phase=three)

            def make(o):
                return OneCycleLR(o, 0.1, total_steps=TOTAL, div_factor=20, final_div_factor=1e3, **rest)
            agree([one_cycle_lr(BASE, p, TOTAL, 0.1, 20, 1e3, **rest) for p in range(TOTAL)],
                  of_torch(make, TOTAL, lr=BASE, momentum=MOMENTUM), ("one cycle", three, shape))
            agree([one_cycle_momentum(MOMENTUM, p, TOTAL, **rest) for p in range(TOTAL)],
                  of_torch(make, TOTAL, "momentum", lr=BASE, momentum=MOMENTUM), ("momentum", three, shape))
    # torch's triangle comes back to its base: target_ratio [5, 1], linear, half of the cycle up
    values = of_torch(lambda o: CyclicLR(o, BASE, 5 * BASE, step_size_up=TOTAL // 4, cycle_momentum=False), TOTAL,
                      lr=BASE)
    agree([cyclic(BASE, p, TOTAL, (5, 1), 2, 0.5, "linear") for p in range(TOTAL)], values, "cyclic")


# ---- the runs ----------------------------------------------------------------------------------------------
def yaml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(yaml(v) for v in value)
    return str(value)


# policy, its function, keys, does it count epochs too
LR = [
    ("fixed", fixed, {}, True),
    ("step", step, dict(step=3, gamma=0.5), True),
    ("step", step, dict(step=[2, 5, 6], gamma=0.1, min_lr=1e-4), True),
    ("exp", exp, dict(gamma=0.9), True),
    ("poly", poly, dict(power=0.9, min_lr=1e-4), True),
    ("inv", inv, dict(gamma=0.5, power=0.75), True),
    ("CosineAnnealing", cosine, dict(min_lr=1e-3), True),
    ("CosineAnnealing", cosine, dict(min_lr_ratio=0.01), True),
    ("FlatCosineAnnealing", flat_cosine, dict(start_percent=0.55, min_lr_ratio=0.01), True),
    ("FlatCosineAnnealing", flat_cosine, dict(start_percent=0.3125, min_lr=0.0), True),  # 2.5 of 8 epochs
    ("CosineRestart", restart, dict(periods=[3, 4], restart_weights=[1, 0.5], min_lr=1e-3), True),
    ("LinearAnnealing", linear, dict(min_lr=1e-3), True),
    ("cyclic", cyclic, dict(target_ratio=[10, 0.0001]), False),
    ("cyclic", cyclic, dict(target_ratio=[4], cyclic_times=3, step_ratio_up=0.3, gamma=0.5,
                            anneal_strategy="linear"), False),
    ("OneCycle", one_cycle_lr, dict(max_lr=0.1), False),
    ("OneCycle", one_cycle_lr, dict(max_lr=0.1, three_phase=True, anneal_strategy="linear", pct_start=0.35,
                                    div_factor=20, final_div_factor=100), False),
    ("OneCycle", one_cycle_lr, dict(max_lr=0.1, total_steps=18), False),
]
MOM = [
    ("step", step, dict(step=[2, 5]), True),
    ("step", step, dict(step=4, gamma=0.8, min_momentum=0.7), True),
    ("CosineAnnealing", cosine, dict(min_momentum=0.5), True),
    ("LinearAnnealing", linear, dict(min_momentum_ratio=0.8), True),
    ("cyclic", cyclic, dict(cyclic_times=2), False),
    ("cyclic", cyclic, dict(target_ratio=[0.9, 1], gamma=0.5, cyclic_times=2, anneal_strategy="linear"), False),
    ("OneCycle", one_cycle_momentum, dict(), False),
    ("OneCycle", one_cycle_momentum, dict(base_momentum=0.8, max_momentum=0.9, three_phase=True), False),
]
DEFAULTS = {("step", True): dict(gamma=0.5), ("cyclic", True): dict(target_ratio=[0.85 / 0.95, 1])}
# kind, warmup_iters, warmup_by_epoch
WARMUPS = [(None, 0, False), ("constant", 7, False), ("linear", 7, False), ("exp", 7, False), ("linear", 2, True)]


def values(func, keys, by_epoch, warmup, base, ratio, divide):
    kind, W, warmup_by_epoch = warmup
    W *= EPOCH_LENGTH if warmup_by_epoch else 1
    keys = {k.replace("_lr", "").replace("_momentum", "") if k.startswith("min_") and func is not poly else k: v
            for k, v in keys.items()}
    for t in range(TOTAL):
        p, P = (t // EPOCH_LENGTH, MAX_EPOCHS) if by_epoch else (t, TOTAL)
        yield warm(func(base, p, P, **keys), t, W, kind, ratio, divide)


def emit(momentum, policy, func, keys, counts_epochs):
    ratio = 0.96 if momentum else 0.01
    all_keys = dict(DEFAULTS.get((policy, momentum), {}), **keys)
    for by_epoch in ("true", "false", None) if counts_epochs else (None,):
        for warmup in WARMUPS:
            kind, W, warmup_by_epoch = warmup
            text = ["policy: %s" % policy] + ["%s: %s" % (k, yaml(v)) for k, v in keys.items()]
            if by_epoch is not None:
                text.append("by_epoch: %s" % by_epoch)
            if kind is not None:
                text += ["warmup: %s" % kind, "warmup_iters: %d" % W, "warmup_ratio: %s" % ratio]
            if warmup_by_epoch:
                text.append("warmup_by_epoch: true")
            for is_epoch_run in (True, False):
                # What the kind of run decides is tried in both, without a warm-up.
                if by_epoch is not None and not is_epoch_run:
                    continue
                if by_epoch is None and kind is not None and (counts_epochs or not is_epoch_run):
                    continue
                is_by_epoch = counts_epochs and (is_epoch_run if by_epoch is None else by_epoch == "true")
                # The second group, too, without a warm-up.
                for group, mult in enumerate(MULTS if kind is None and not momentum else [1]):
                    base = MOMENTUM if momentum else BASE * mult
                    print('  { %s, %s, %d, "{%s}",' % (("FALSE", "TRUE")[momentum], ("FALSE", "TRUE")[is_epoch_run],
                                                       group, ", ".join(text)))
                    print("    { %s } }," % ", ".join(
                        "%.10g" % v for v in values(func, all_keys, is_by_epoch, warmup, base, ratio, momentum)))


def main():
    check_torch()
    print("/* golden-schedules.h: written by make-golden-schedules.py (torch %s). */" % torch.__version__[:4])
    print("#ifndef TESTS_HOOKS_GOLDEN_SCHEDULES_H\n#define TESTS_HOOKS_GOLDEN_SCHEDULES_H\n\n#include <glib.h>\n")
    print("#define GOLDEN_BASE_LR %s\n#define GOLDEN_MOMENTUM %s" % (BASE, MOMENTUM))
    print("#define GOLDEN_MULTS { %s }" % ", ".join(map(str, MULTS)))
    print("#define GOLDEN_EPOCH_LENGTH %d\n#define GOLDEN_MAX_EPOCHS %d" % (EPOCH_LENGTH, MAX_EPOCHS))
    print("#define GOLDEN_TOTAL (GOLDEN_EPOCH_LENGTH * GOLDEN_MAX_EPOCHS)\n")
    print("static const struct\n{\n  gboolean is_momentum, is_epoch_run;\n  guint group; /* of the parameters */")
    print("  const char *config;\n  double values[GOLDEN_TOTAL];")
    print("} golden_schedules[] = {")
    for row in LR:
        emit(False, *row)
    for row in MOM:
        emit(True, *row)
    print("};\n\n#endif")


if __name__ == "__main__":
    sys.exit(main())
