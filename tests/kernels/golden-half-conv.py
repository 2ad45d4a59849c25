#!/usr/bin/python3
"""Writes golden-half-conv.h: a grouped, dilated, strided convolution in half precision with a folded batch norm, on inputs that harness.c's
value_at makes too. Operands are rounded by PyTorch, sums are in double, results are rounded once. Made with PyTorch 2.x, on the CPU.

    python3 golden-half-conv.py > golden-half-conv.h
"""
import numpy as np
import torch
import torch.nn.functional as F

M = 0xFFFFFFFF
EPS = 1e-5
OPTIONS = dict(stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)


def lowbias32(x):
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & M
    x = ((x ^ (x >> 15)) * 0x846CA68B) & M
    return x ^ (x >> 16)


def values(slot, *shape):
    bits = [lowbias32((lowbias32((lowbias32(60) + slot) & M) + i) & M) for i in range(int(np.prod(shape)))]
    return torch.tensor([(b >> 8) / 8388608.0 - 1 for b in bits], dtype=torch.float32).reshape(shape)


def emit(name, tensor):
    numbers = [np.format_float_scientific(v, unique=True) + "f" for v in tensor.detach().float().numpy().ravel()]
    print(f"static const float {name}[] = {{")
    for i in range(0, len(numbers), 6):
        print("  " + ", ".join(numbers[i : i + 6]) + ",")
    print("};\n")


def conv(name, half):
    x, w = values(0, 2, 4, 7, 6).to(half), values(1, 6, 2, 3, 2)
    gamma, beta, mean, var = values(2, 6), values(3, 6), values(4, 6), 1.25 + 0.75 * values(5, 6)
    residual, dy = values(6, 2, 6, 4, 4).to(half), values(7, 2, 6, 4, 4).to(half)
    sigma = torch.sqrt(var + torch.tensor(EPS, dtype=torch.float32))
    a = gamma / sigma
    folded = (a.reshape(6, 1, 1, 1) * w).to(half)

    y = F.conv2d(x.double(), folded.double(), None, **OPTIONS) + (beta.double() - a.double() * mean.double()).reshape(6, 1, 1)
    emit(f"golden_{name}_dst", F.relu(y + residual.double()).float().to(half))

    source = x.double().requires_grad_()
    F.conv2d(source, folded.double(), None, **OPTIONS).backward(dy.double())
    emit(f"golden_{name}_diff_src", source.grad.float().to(half))

    plain = torch.zeros(6, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    F.conv2d(x.double(), plain, None, **OPTIONS).backward(dy.double())
    total, exact = dy.double().sum((0, 2, 3)), torch.sqrt(var.double() + EPS)
    emit(f"golden_{name}_diff_weights", a.double().reshape(6, 1, 1, 1) * plain.grad)
    emit(f"golden_{name}_diff_gamma", ((w.double() * plain.grad).sum((1, 2, 3)) - mean.double() * total) / exact)
    emit(f"golden_{name}_diff_beta", total)


print("/* golden-half-conv.h: made by golden-half-conv.py with PyTorch 2; do not edit. */\n")
conv("f16", torch.float16)
conv("bf16", torch.bfloat16)
