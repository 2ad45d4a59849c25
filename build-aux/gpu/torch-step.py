#!/usr/bin/env python3
"""Time and memory of a training step of RetinaNet in PyTorch, to set `runner bench` against.

The detector is that of configs/retinanet_voc.yaml: ResNet-50 whose stem and first stage are frozen and whose
batch norms stand still, a pyramid with five levels, a head with four convolutions in each tower, 20 classes, 9
anchors; focal loss and L1; SGD with momentum. Targets are drawn once: their assignment is done on the host by
both sides. Prints one JSON object: seconds of the median step, and the most bytes that tensors took
(allocated) and that PyTorch held for them (reserved).

Needs torch and a CUDA device: exit code 3 without.
"""

import argparse
import json
import statistics
import sys
import time

CLASSES, ANCHORS, CHANNELS = 20, 9, 256


def parse():
    parser = argparse.ArgumentParser(description="a training step of RetinaNet R50-FPN in PyTorch")
    parser.add_argument("--mode", choices=["fp32", "tf32", "fp16", "bf16"], required=True,
                        help="fp32: TF32 is off; tf32: as PyTorch is by default; fp16, bf16: autocast, channels_last")
    parser.add_argument("--shape", default="608x1024", metavar="HxW")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--iters", type=int, default=30)
    parser.add_argument("--warmup", type=int, default=5)
    return parser.parse_args()


def build(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        """1x1, 3x3 with the stride, 1x1 to four times the width, and the way around them."""

        def __init__(self, n_in, width, stride):
            super().__init__()
            n_out = 4 * width
            self.reduce = nn.Conv2d(n_in, width, 1, bias=False)
            self.spatial = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.expand = nn.Conv2d(width, n_out, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(n_out)])
            self.around = None
            if stride != 1 or n_in != n_out:
                self.around = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

        def forward(self, x):
            y = functional.relu(self.norms[0](self.reduce(x)), inplace=True)
            y = functional.relu(self.norms[1](self.spatial(y)), inplace=True)
            y = self.norms[2](self.expand(y))
            y += x if self.around is None else self.around(x)
            return functional.relu(y, inplace=True)

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64),
                                      nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
            self.stages, n_in = nn.ModuleList(), 64
            for number, (n_blocks, width) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512))):
                blocks = []
                for i in range(n_blocks):
                    blocks.append(Block(n_in, width, 2 if number > 0 and i == 0 else 1))
                    n_in = 4 * width
                self.stages.append(nn.Sequential(*blocks))
            self.lateral = nn.ModuleList([nn.Conv2d(n, CHANNELS, 1) for n in (512, 1024, 2048)])
            self.output = nn.ModuleList([nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1) for _ in range(3)])
            self.coarser = nn.ModuleList([nn.Conv2d(2048, CHANNELS, 3, 2, 1), nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)])
            self.classify = self.tower(ANCHORS * CLASSES, -4.595)
            self.regress = self.tower(ANCHORS * 4, 0)
            for frozen in (self.stem, self.stages[0]):
                frozen.requires_grad_(False)

        @staticmethod
        def tower(n_out, bias):
            layers = []
            for _ in range(4):
                layers += [nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1), nn.ReLU(inplace=True)]
            layers.append(nn.Conv2d(CHANNELS, n_out, 3, 1, 1))
            for layer in layers[::2]:
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)
            nn.init.constant_(layers[-1].bias, bias)
            return nn.Sequential(*layers)

        def train(self, mode=True):
            super().train(mode)
            for module in self.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
            return self

        def forward(self, x):
            x, maps = self.stem(x), []
            for stage in self.stages:
                x = stage(x)
                maps.append(x)
            merged = [lateral(y) for lateral, y in zip(self.lateral, maps[1:])]
            for i in (1, 0):
                size = merged[i].shape[-2:]
                merged[i] = merged[i] + functional.interpolate(merged[i + 1], size=size, mode="nearest")
            levels = [output(y) for output, y in zip(self.output, merged)]
            levels.append(self.coarser[0](maps[-1]))
            levels.append(self.coarser[1](levels[-1]))
            return [(self.classify(y), self.regress(y)) for y in levels]

    return Detector()


def draw_targets(torch, levels, batch):
    """One anchor in 2000 has an object; of each level: one-hot classes, the anchors' numbers, offsets."""
    generator, targets = torch.Generator().manual_seed(1), []
    for classes, _ in levels:
        n = batch * ANCHORS * classes.shape[-2] * classes.shape[-1]
        positive = (torch.rand(n, generator=generator) < 1 / 2000).nonzero().flatten()
        wanted = torch.zeros(n, CLASSES)
        wanted[positive, torch.randint(CLASSES, (len(positive),), generator=generator)] = 1
        targets.append([t.cuda() for t in (wanted, positive, torch.randn(len(positive), 4, generator=generator))])
    return targets


def loss_of(torch, levels, targets):
    functional = torch.nn.functional
    total, n_positive = 0, sum(len(positive) for _, positive, _ in targets)
    for (classes, boxes), (wanted, positive, offsets) in zip(levels, targets):
        logits = classes.float().permute(0, 2, 3, 1).reshape(-1, CLASSES)
        entropy = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        chance = torch.sigmoid(logits)
        missed = chance + wanted - 2 * chance * wanted
        total = total + ((0.75 - 0.5 * wanted) * missed * missed * entropy).sum()
        found = boxes.float().permute(0, 2, 3, 1).reshape(-1, 4)[positive]
        total = total + (found - offsets).abs().sum()
    return total / max(n_positive, 1)


def main():
    options = parse()
    try:
        import torch
    except ImportError:
        sys.exit(say("torch is not installed"))
    if not torch.cuda.is_available():
        sys.exit(say("torch finds no CUDA device"))
    height, width = map(int, options.shape.split("x"))
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(options.mode)

    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = options.mode != "fp32"
    detector = build(torch).cuda().train()
    images = torch.randn(options.batch, 3, height, width, device="cuda")
    if half is not None:
        detector = detector.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    learnt = [p for p in detector.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(learnt, lr=1e-5, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda", init_scale=512.0, enabled=options.mode == "fp16")

    targets, seconds = None, []
    for i in range(options.warmup + options.iters):
        if i == options.warmup:
            torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=half, enabled=half is not None):
            levels = detector(images)
        if targets is None:
            targets = draw_targets(torch, levels, options.batch)
        loss = loss_of(torch, levels, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        torch.cuda.synchronize()
        if i >= options.warmup:
            seconds.append(time.perf_counter() - begin)
    available, total = torch.cuda.mem_get_info()
    print(json.dumps({
        "mode": options.mode, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
        "device": torch.cuda.get_device_name(), "shape": options.shape, "batch": options.batch,
        "iters": options.iters, "seconds_per_iter": statistics.median(seconds),
        "allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
        "device_used_bytes": total - available, "loss": float(loss)}))


def say(text):
    print("torch-step: " + text, file=sys.stderr)
    return 3


if __name__ == "__main__":
    main()
