#!/usr/bin/env python3
"""Checks that weight files of full size come through `runner convert` bit for bit:  check-full-size.py RUNNER

With the PyTorch that runs it, it saves ResNet-50 and RetinaNet R50-FPN with random weights, in single and half precision,
with and without an optimizer, as a zip archive and in the older form; converts each to safetensors and compares every
tensor; and loads RUNNER's own .pth with weights_only. Needs 1 GB in the temporary folder, and NumPy.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch

runner = sys.argv[1]


def batch_norm(name, n):
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (n,)
    yield f"{name}.num_batches_tracked", ()


def resnet50():
    yield "conv1.weight", (64, 3, 7, 7)
    yield from batch_norm("bn1", 64)
    inplanes = 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for block in range(blocks):
            name = f"layer{stage}.{block}."
            for i, shape in enumerate(((width, inplanes, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)), 1):
                yield f"{name}conv{i}.weight", shape
                yield from batch_norm(f"{name}bn{i}", shape[0])
            if block == 0:
                yield f"{name}downsample.0.weight", (4 * width, inplanes, 1, 1)
                yield from batch_norm(f"{name}downsample.1", 4 * width)
            inplanes = 4 * width


def convolution(name, *shape):
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def retinanet():
    for name, shape in resnet50():
        yield "backbone." + name, shape
    for i, channels in enumerate((512, 1024, 2048)):
        yield from convolution(f"neck.lateral_convs.{i}.conv", 256, channels, 1, 1)
    for i in range(5):
        yield from convolution(f"neck.fpn_convs.{i}.conv", 256, 2048 if i == 3 else 256, 3, 3)
    for tower in ("cls", "reg"):
        for i in range(4):
            yield from convolution(f"bbox_head.{tower}_convs.{i}.conv", 256, 256, 3, 3)
    yield from convolution("bbox_head.retina_cls", 180, 256, 3, 3)
    yield from convolution("bbox_head.retina_reg", 36, 256, 3, 3)


def raw(tensor):
    """The bytes of a tensor; `view` knows no 0 dimensions."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def convert(source, target):
    subprocess.run([runner, "convert", source, target], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check(shapes, dtype, with_optimizer, is_zip, folder):
    source, stored, again = (os.path.join(folder, name) for name in ("in.pth", "out.safetensors", "out.pth"))
    state = {name: torch.randn(shape).to(dtype) if shape else torch.tensor(7) for name, shape in shapes}
    content = state
    if with_optimizer:
        parameters = [torch.nn.Parameter(t.clone()) for t in state.values() if t.dim() == 4]
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        content = {"meta": {"epoch": 1}, "state_dict": state, "optimizer": optimizer.state_dict()}
    torch.save(content, source, _use_new_zipfile_serialization=is_zip)
    convert(source, stored)
    convert(source, again)
    tensors, loaded = read_safetensors(stored), torch.load(again, weights_only=True)
    loaded = loaded.get("state_dict", loaded)
    assert set(tensors) == set(state) == set(loaded)
    for name, tensor in state.items():
        assert tensors[name] == raw(tensor) == raw(loaded[name]), name
    return len(state)


torch.manual_seed(0)
n_files = 0
for model in (resnet50, retinanet):
    for dtype in (torch.float32, torch.float16):
        for with_optimizer in (False, True):
            for is_zip in (True, False):
                with tempfile.TemporaryDirectory() as folder:
                    n = check(list(model()), dtype, with_optimizer, is_zip, folder)
                n_files += 1
                print(f"{model.__name__}, {dtype}, {'with' if with_optimizer else 'no'} optimizer,"
                      f" {'zip' if is_zip else 'older form'}: {n} tensors equal", flush=True)
print(f"PyTorch {torch.__version__}: {n_files} files")
