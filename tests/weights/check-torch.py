#!/usr/bin/env python3
"""Checks that PyTorch loads what our writer wrote:  check-torch.py fixtures/ours.pth

weights_only, with and without mmap where the version has it, every tensor bit for bit by the formula of golden.h.
"""
import math
import sys

import torch

from importlib import import_module

value = import_module("make-fixtures").value
TENSORS = {"backbone.conv1.weight": ("float32", (2, 3, 3, 3)), "half": ("float16", (3, 5)),
           "bfloat": ("bfloat16", (300,)), "double": ("float64", (2,)), "num_batches_tracked": ("int64", ()),
           "i32": ("int32", (3,)), "i16": ("int16", (1,)), "i8": ("int8", (7,)), "u8": ("uint8", (65,)),
           "bool": ("bool", (4,)), "empty": ("float32", (0, 3)), "Größe": ("float32", (1, 2, 1, 2, 1, 2, 1, 2))}


def check(**options):
    loaded = torch.load(sys.argv[1], weights_only=True, **options)
    assert loaded["meta"] == {"CLASSES": ("cell", "Größe")}
    assert list(loaded["state_dict"]) == list(TENSORS)
    for seed, (name, (dtype, shape)) in enumerate(TENSORS.items()):
        tensor = loaded["state_dict"][name]
        assert tensor.dtype == getattr(torch, dtype) and tuple(tensor.shape) == shape, name
        n = math.prod(shape) * tensor.element_size()
        wanted = bytes(value(seed, i) & (1 if dtype == "bool" else 255) for i in range(n))
        flat = tensor.reshape(-1)
        assert bytes((flat if dtype == "bool" else flat.view(torch.uint8)).tolist()) == wanted, name
        assert n == 0 or tensor.data_ptr() % tensor.element_size() == 0, name


check()
if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 1):
    check(mmap=True)
print("PyTorch", torch.__version__, "loads", sys.argv[1])
