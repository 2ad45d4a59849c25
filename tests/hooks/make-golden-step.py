#!/usr/bin/env python3
"""Writes what MMCV 1.7 does with accumulated gradients, and the two loss scalers with sequences of overflows.

MMCV's classes are written down here from their description, so that the test does not depend on our own code;
GradScaler is PyTorch's own (2.3 or later, which has it on the CPU).

    make-golden-step.py accumulation > golden-accumulation.h
    make-golden-step.py scalers > golden-scalers.h
"""
import itertools
import sys

import torch


class MmcvAccumulation:
    """GradientCumulativeOptimizerHook of MMCV 1.6.2 to 1.7.2: factor and step of each iteration."""

    def __init__(self, cumulative_iters):
        self.cumulative_iters = cumulative_iters
        self.divisible_iters = 0
        self.remainder_iters = 0
        self.initialized = False

    def _init(self, max_iters):
        self.divisible_iters = max_iters // self.cumulative_iters * self.cumulative_iters
        self.remainder_iters = max_iters - self.divisible_iters
        self.initialized = True

    def after_train_iter(self, iteration, max_iters):
        if not self.initialized:
            self._init(max_iters)
        if iteration < max_iters - self.remainder_iters:
            factor = self.cumulative_iters
        else:
            factor = self.remainder_iters
            assert factor > 0
        is_step = (iteration + 1) % self.cumulative_iters == 0 or iteration + 1 == max_iters
        return factor, is_step


class MmcvLossScaler:
    """mmcv.runner.fp16_utils.LossScaler."""

    def __init__(self, init_scale=2**32, mode="dynamic", scale_factor=2., scale_window=1000):
        self.cur_scale = init_scale
        self.cur_iter = 0
        self.mode = mode
        self.last_overflow_iter = -1
        self.scale_factor = scale_factor
        self.scale_window = scale_window

    def update_scale(self, overflow):
        if self.mode != "dynamic":
            return
        if overflow:
            self.cur_scale = max(self.cur_scale / self.scale_factor, 1)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.cur_scale *= self.scale_factor
        self.cur_iter += 1


def runs(values):
    """1 1 1 2 -> "1x3 2x1" """
    return " ".join(f"{value:.9g}x{len(list(group))}" for value, group in itertools.groupby(values))


def accumulation_rows(max_iters, cumulative_iters):
    for start in range(max_iters + 1):
        hook = MmcvAccumulation(cumulative_iters)
        factors, steps, weights, weight = [], [], [], 0.0
        for iteration in range(start, max_iters):
            factor, is_step = hook.after_train_iter(iteration, max_iters)
            factors.append(factor)
            weight += 1 / factor
            if is_step:
                steps.append(iteration)
                weights.append(weight)
                weight = 0.0
        gaps = [b - a for a, b in zip([0] + steps, steps)]
        yield f'  {{ {max_iters}, {cumulative_iters}, {start}, "{runs(factors)}", "{runs(gaps)}", "{runs(weights)}" }},'


def grad_scaler(overflows, n, **arguments):
    """Scale after each update, by the steps that a user of torch.amp does."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", **arguments)
    scales = []
    for i in range(n):
        optimizer.zero_grad()
        scaler.scale(parameter.sum()).backward()
        if i in overflows:
            parameter.grad.fill_(float("inf"))
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def loss_scaler(overflows, n, **arguments):
    scaler = MmcvLossScaler(**arguments)
    scales = []
    for i in range(n):
        scaler.update_scale(i in overflows)
        scales.append(scaler.cur_scale)
    return scales


# A sequence without system: squares modulo a prime.
SCATTERED = {i for i in range(400) if (i * i + 3 * i) % 101 < 4}
# Enough in a row to meet the smallest scale.
DENSE = set(range(3, 40))

SCALERS = [
    # function, overflows, updates, arguments by our names
    (grad_scaler, set(), 4200, {}),
    (grad_scaler, {500}, 4700, {}),
    (grad_scaler, SCATTERED, 400, dict(init_scale=1000.0, growth_factor=1.3, backoff_factor=0.7, growth_interval=7)),
    (loss_scaler, set(), 2200, {}),
    (loss_scaler, {500}, 2700, {}),
    (loss_scaler, SCATTERED, 400, dict(init_scale=1024, scale_factor=4.0, scale_window=9)),
    (loss_scaler, DENSE, 60, dict(init_scale=2**20, scale_window=5)),
    (loss_scaler, SCATTERED, 100, dict(init_scale=512, mode="static")),
]


def scaler_row(function, overflows, n, arguments):
    scales = function(overflows, n, **arguments)
    if function is grad_scaler or arguments:
        text = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    else:
        text = "mode: dynamic"
    bad = runs([int(i in overflows) for i in range(n)])
    return f'  {{ "{{{text}}}", "{bad}",\n    "{runs(scales)}" }},'


HEAD = """/* Made by make-golden-step.py; do not edit. "4x3 2x1" is 4, 4, 4, 2. */
/* clang-format off */"""

ACCUMULATION = """typedef struct
{
  gint64 max_iters, cumulative_iters, start;
  const char *factors; /* of the iterations from start on */
  const char *steps;   /* iterations that end with a step, each as the distance from the one before */
  const char *weights; /* of the steps: sums of 1 / factor */
} MmcvRow;
static const MmcvRow mmcv_rows[] = {"""

SCALER = """typedef struct
{
  const char *loss_scale; /* the key */
  const char *overflows;  /* 1: the update is one */
  const char *scales;     /* after each update */
} ScalerRow;
static const ScalerRow scaler_rows[] = {"""


def main():
    print(HEAD)
    if sys.argv[1:] == ["accumulation"]:
        print(ACCUMULATION)
        for max_iters, cumulative_iters in [(102, 4), (103, 4), (100, 4), (3, 4)]:
            for row in accumulation_rows(max_iters, cumulative_iters):
                print(row)
    elif sys.argv[1:] == ["scalers"]:
        print(SCALER)
        for row in SCALERS:
            print(scaler_row(*row))
    else:
        sys.exit(__doc__)
    print("};")


main()
