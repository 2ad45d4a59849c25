#!/usr/bin/python3
"""Writes golden-torch.h: results of PyTorch on inputs that harness.c's value_at makes too. Made with PyTorch 1.13.1 (Debian 12), on the CPU.

    python3 golden-torch.py > golden-torch.h
"""
import numpy as np
import torch
import torch.nn.functional as F

M = 0xFFFFFFFF


def lowbias32(x):
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & M
    x = ((x ^ (x >> 15)) * 0x846CA68B) & M
    return x ^ (x >> 16)


def value_at(seed, slot, i):
    bits = lowbias32((lowbias32((lowbias32(seed) + slot) & M) + i) & M)
    return (bits >> 8) / 8388608.0 - 1


def values(seed, slot, *shape):
    n = int(np.prod(shape))
    return torch.tensor([value_at(seed, slot, i) for i in range(n)], dtype=torch.float32).reshape(shape)


def emit(name, tensor):
    numbers = [np.format_float_scientific(v, unique=True) + "f" for v in tensor.detach().float().numpy().ravel()]
    print(f"static const float {name}[] = {{")
    for i in range(0, len(numbers), 6):
        print("  " + ", ".join(numbers[i : i + 6]) + ",")
    print("};\n")


def sgd():
    """Three steps on 7 values: plain, momentum with dampening, Nesterov; all with weight decay."""
    for name, options in {
        "plain": dict(lr=0.1, weight_decay=0.01),
        "momentum": dict(lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.01),
        "nesterov": dict(lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    }.items():
        p = torch.nn.Parameter(values(1, 0, 7))
        optimizer = torch.optim.SGD([p], **options)
        for step in range(3):
            p.grad = values(2 + step, 0, 7)
            optimizer.step()
        emit(f"golden_sgd_{name}", p)


def adam():
    """Four steps on 7 values with weight decay, the last one with small gradients: values and states."""
    for name, cls, options in (
        ("plain", torch.optim.Adam, {}),
        ("amsgrad", torch.optim.Adam, dict(amsgrad=True)),
        ("decoupled", torch.optim.AdamW, {}),
    ):
        p = torch.nn.Parameter(values(1, 0, 7))
        optimizer = cls([p], lr=0.1, betas=(0.9, 0.75), eps=1e-3, weight_decay=0.25, **options)
        for step in range(4):
            p.grad = values(2 + step, 0, 7) / (16 if step == 3 else 1)
            optimizer.step()
        states = ["exp_avg", "exp_avg_sq"] + (["max_exp_avg_sq"] if options else [])
        emit(f"golden_adam_{name}", torch.cat([p] + [optimizer.state[p][s] for s in states]))


def bf16_states():
    """100 steps on 7 values with states that are kept in bfloat16; the arithmetic of a step is in single precision."""
    f = lambda x: torch.tensor(x, dtype=torch.float32)
    p, v = values(1, 0, 7), torch.zeros(7, dtype=torch.bfloat16)
    for step in range(100):
        g = values(2 + step, 0, 7) + f(0.01) * p
        momentum = g if step == 0 else f(0.9) * v.float() + f(0.75) * g
        p = p - f(0.1) * momentum
        v = momentum.to(torch.bfloat16)
    emit("golden_bf16_sgd", torch.cat([p, v.float()]))

    p, m, v = values(1, 0, 7), torch.zeros(7, dtype=torch.bfloat16), torch.zeros(7, dtype=torch.bfloat16)
    for step in range(100):
        g = values(2 + step, 0, 7) + f(0.25) * p
        exp_avg = m.float() * f(0.9) + f(1 - 0.9) * g
        exp_avg_sq = v.float() * f(0.75) + f(1 - 0.75) * g * g
        size, bias2 = f(0.1 / (1 - 0.9 ** (step + 1))), f((1 - 0.75 ** (step + 1)) ** 0.5)
        p = p - size * exp_avg / (exp_avg_sq.sqrt() / bias2 + f(1e-3))
        m, v = exp_avg.to(torch.bfloat16), exp_avg_sq.to(torch.bfloat16)
    emit("golden_bf16_adam", torch.cat([p, m.float(), v.float()]))


def halves():
    """A sum, a mean of four and the gradient of a batch norm, of inputs in half precision: computed in single precision, rounded once."""
    for name, dtype in {"f16": torch.float16, "bf16": torch.bfloat16}.items():
        x, y = values(60, 0, 2, 3, 4, 6).to(dtype), values(60, 1, 2, 3, 4, 6).to(dtype)
        emit(f"golden_{name}_add", F.relu(x.float() + y.float()).to(dtype))
        emit(f"golden_{name}_avg_pool", F.avg_pool2d(x.double(), 2, 2).float().to(dtype))
        emit(f"golden_{name}_max_pool", F.max_pool2d(x.float(), 2, 2).to(dtype))
        layer = torch.nn.BatchNorm2d(3, eps=1e-5).double()
        wide = x.double().requires_grad_()
        layer(wide).backward(y.double())
        emit(f"golden_{name}_norm_diff_src", wide.grad.float().to(dtype))


def norms():
    """Norms of 1000 values."""
    x = values(50, 0, 1000).double()
    emit("golden_norms", torch.stack([torch.linalg.vector_norm(x, p) for p in (1, 2, 3.5, float("inf"))]))


def norm():
    """Training batch norm of [2, 3, 4, 5]: output, running statistics, gradients of sum (r * output)."""
    x = values(10, 0, 2, 3, 4, 5).requires_grad_()
    layer = torch.nn.BatchNorm2d(3, eps=1e-5, momentum=0.1)
    with torch.no_grad():
        layer.weight.copy_(values(10, 1, 3))
        layer.bias.copy_(values(10, 2, 3))
    y = layer(x)
    y.backward(values(10, 3, 2, 3, 4, 5))
    emit("golden_norm_dst", y)
    emit("golden_norm_running_mean", layer.running_mean)
    emit("golden_norm_running_var", layer.running_var)
    emit("golden_norm_diff_src", x.grad)
    emit("golden_norm_diff_gamma", layer.weight.grad)
    emit("golden_norm_diff_beta", layer.bias.grad)


def conv():
    """Grouped, dilated, strided convolution of [2, 4, 7, 6] to 6 channels: output and gradients of sum (r * output)."""
    x = values(20, 0, 2, 4, 7, 6).requires_grad_()
    w = values(20, 1, 6, 2, 3, 2).requires_grad_()
    b = values(20, 2, 6).requires_grad_()
    y = F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2)
    y.backward(values(20, 3, *y.shape))
    emit("golden_conv_dst", y)
    emit("golden_conv_diff_src", x.grad)
    emit("golden_conv_diff_weights", w.grad)
    emit("golden_conv_diff_bias", b.grad)


def pool():
    """Max and average pooling of [1, 2, 7, 6], window 3, stride 2, padding 1, ceil mode."""
    x = values(30, 0, 1, 2, 7, 6)
    emit("golden_max_pool", F.max_pool2d(x, 3, 2, 1, ceil_mode=True))
    emit("golden_avg_pool", F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False))


def smooth_l1():
    """Differences of 12 pairs: L1, and smooth L1 with beta 0.5; value of the sum, gradient."""
    for name, beta in {"l1": 0.0, "smooth": 0.5}.items():
        x = values(40, 0, 12).requires_grad_()
        loss = F.smooth_l1_loss(x, values(40, 1, 12), reduction="sum", beta=beta)
        loss.backward()
        emit(f"golden_{name}_loss", loss)
        emit(f"golden_{name}_slope", x.grad)


print("/* golden-torch.h: made by golden-torch.py with PyTorch 1.13.1; do not edit. */\n")
for part in (sgd, adam, bf16_states, halves, norms, norm, conv, pool, smooth_l1):
    part()
