#!/usr/bin/env python3
"""Writes fixtures/*.pth with the PyTorch that runs it:  make-fixtures.py fixtures

NAME-VERSION.pth is the zip form, NAME-VERSION-legacy.pth the older one. Elements come from the formula `value`,
which golden.h has too, so that the expected values need no file of their own. Committed files: PyTorch 1.13.0
with NumPy 1.24, and PyTorch 2.15.0 with NumPy 2.4.
"""
import collections
import sys

import numpy as np
import torch


def value(seed, i):
    """An integer from -1024 to 1023, which float16 holds exactly."""
    h = (i * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    h ^= h >> 15
    return (h >> 8 & 0x7FF) - 1024


def tensor(seed, shape, dtype=torch.float32):
    n = int(np.prod(shape, dtype=np.int64))
    values = [value(seed, i) for i in range(n)]
    if dtype.is_floating_point:
        numbers = torch.tensor([v % 256 if dtype == torch.bfloat16 else v / 64 for v in values], dtype=dtype)
    elif dtype == torch.bool:
        numbers = torch.tensor([v % 2 == 1 for v in values], dtype=dtype)
    else:
        numbers = torch.tensor([v % 128 if dtype in (torch.uint8, torch.int8) else v for v in values], dtype=dtype)
    return numbers.reshape(shape)


def types():
    base = tensor(20, (4, 6))
    return collections.OrderedDict(
        f32=tensor(1, (3, 4)), f16=tensor(2, (2, 5), torch.float16), bf16=tensor(3, (7,), torch.bfloat16),
        f64=tensor(4, (2, 2), torch.float64), i64=tensor(5, (), torch.int64), i32=tensor(6, (3,), torch.int32),
        i16=tensor(7, (3,), torch.int16), i8=tensor(8, (5,), torch.int8), u8=tensor(9, (5,), torch.uint8),
        bool=tensor(10, (6,), torch.bool), empty=torch.empty(0, 3), base=base, transposed=base.t(),
        part=base[1:3, 2:5], column=base[:, 1], expanded=tensor(21, (1, 4)).expand(3, 4),
        parameter=torch.nn.Parameter(tensor(22, (3,))), permuted=tensor(23, (2, 3, 4, 5)).permute(0, 3, 1, 2))


def layer(dtype=torch.float32, prefix=""):
    return collections.OrderedDict(
        (prefix + name, t) for name, t in (
            ("backbone.conv1.weight", tensor(30, (4, 3, 3, 3), dtype)), ("backbone.bn1.weight", tensor(31, (4,), dtype)),
            ("backbone.bn1.num_batches_tracked", tensor(32, (), torch.int64)),
            ("bbox_head.retina_cls.bias", tensor(33, (9,), dtype))))


def detector():
    """As MMDetection saves: numbers from NumPy among the settings, the optimizer's state beside the weights."""
    state_dict = layer(prefix="module.")
    state_dict._metadata = collections.OrderedDict({"": {"version": 1}})
    weight = torch.nn.Parameter(state_dict["module.backbone.conv1.weight"].clone())
    optimizer = torch.optim.SGD([weight], lr=0.01, momentum=0.9)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    meta = {"mmdet_version": "2.28.0", "config": "model = dict (\n)", "epoch": np.int64(12), "iter": 500,
            "hook_msgs": {}, "mean": np.array([123.675, 116.28]), "seed": None, "CLASSES": ("cell", "Größe", "x y"),
            "PALETTE": [(220, 20, 60)], "env_info": {"GPU": True, "t": 1.5, "big": 1 << 70}}
    return {"meta": meta, "state_dict": state_dict, "optimizer": optimizer.state_dict()}


FILES = {"types": types, "plain": layer, "half": lambda: layer(torch.float16), "detector": detector,
         "model": lambda: {"model": layer(), "epoch": 3, "args": {"lr": 0.01}}}

if __name__ == "__main__":
    version = ".".join(torch.__version__.split(".")[:2])
    for name, make in FILES.items():
        torch.save(make(), f"{sys.argv[1]}/{name}-{version}.pth")
        torch.save(make(), f"{sys.argv[1]}/{name}-{version}-legacy.pth", _use_new_zipfile_serialization=False)
