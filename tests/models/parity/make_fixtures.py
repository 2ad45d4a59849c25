#!/usr/bin/env python3
"""Makes the fixtures of test-parity.c: RetinaNet R18-FPN as MMDetection 2.17 builds it, in plain PyTorch.

    make_fixtures.py [KIND...]      writes frozen.txt and training.txt, or those that are named, into the current folder
    make_fixtures.py --search N     finds the seeds below: of N candidates the one with the widest margin

Nothing of the C code is used: model, assignment, box coder and losses are written down once more from the papers and from
MMDetection. All is computed in double precision, so the fixtures are the truth that float32 is compared with. Weights, statistics,
pixels and boxes are drawn from an integer hash that both sides know, and fixtures hold summaries only: per tensor its norm, its
largest entry, 64 sampled entries and 8 random projections.

Margin. A ReLU whose input is within rounding of 0 may pass a gradient on one side and block it on the other, which changes entries
of a weight gradient by far more than rounding. So seeds are chosen whose smallest ReLU input, in standard deviations of its
tensor, is well above float32's error.

Needs PyTorch >= 1.8 and NumPy.
"""
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N, H, W = 2, 71, 103  # odd maps on every level: 9x13, 5x7, 3x4, 2x2, 1x1
PAD = [(71, 103), (64, 96)]  # each image's own padded size: the second has anchors that exist only because of the batch
CLASSES = 3
GTS = [3, 2]
STEPS, LR, MOMENTUM, DECAY = 10, 1e-4, 0.9, 1e-4
STRIDES = [8, 16, 32, 64, 128]
A = 9
SEEDS = {'frozen': 13, 'training': 11}  # margins 2.5e-6 and 1.9e-6, the widest of 30

# ---- the hash ------------------------------------------------------------------------------------------------------------------------


def stream(seed, name):
    """FNV-1a, 64 bits, over the seed's decimal digits, a slash and the name."""
    h = 0xcbf29ce484222325
    for byte in f'{seed}/{name}'.encode():
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h


def bits(seed, name, n):
    """The first n outputs of SplitMix64 (Steele et al. 2014) that starts at the stream's hash."""
    with np.errstate(over='ignore'):
        z = np.uint64(stream(seed, name)) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))


def uniform(seed, name, n):
    """In [-1, 1), multiples of 2^-23: exact in float32."""
    return (bits(seed, name, n) >> np.uint64(40)).astype(np.float32) * np.float32(2 ** -23) - np.float32(1)


def draw(seed, name, shape, offset, scale):
    u = uniform(seed, name, int(np.prod(shape)))
    return torch.from_numpy((np.float32(offset) + np.float32(scale) * u).reshape(shape)).double()


def draw_parameter(seed, name, shape):
    """Keeps the size of activations about equal from layer to layer."""
    last = name.rsplit('.', 1)[1]
    if len(shape) == 4:  # He et al. 2015 with the fan-in, uniform; predictors smaller
        gain = 0.05 if 'retina_' in name else 1.0
        return draw(seed, name, shape, 0, gain * np.sqrt(6 / (shape[1] * shape[2] * shape[3])))
    if last == 'running_var':
        return draw(seed, name, shape, 1, 0.5)
    if last == 'weight':  # of a batch norm
        return draw(seed, name, shape, 0.5, 0.25)
    return draw(seed, name, shape, -2 if name == 'bbox_head.retina_cls.bias' else 0, 0.1)


# ---- the model -----------------------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x, relu):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        cin = 64
        for i, cout in enumerate((64, 128, 256, 512)):
            stage = nn.ModuleList([Block(cin, cout, 1 if i == 0 else 2), Block(cout, cout, 1)])
            setattr(self, f'layer{i + 1}', stage)
            cin = cout

    def forward(self, x, relu):
        x = F.max_pool2d(relu(self.bn1(self.conv1(x))), 3, 2, 1)
        outs = []
        for i in range(1, 5):
            for block in getattr(self, f'layer{i}'):
                x = block(x, relu)
            outs.append(x)
        return outs


class ConvModule(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(*args, **kwargs)

    def forward(self, x):
        return self.conv(x)


class FPN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lateral_convs = nn.ModuleList([ConvModule(c, 256, 1) for c in (128, 256, 512)])
        self.fpn_convs = nn.ModuleList([ConvModule(256, 256, 3, 1, 1) for _ in range(3)]
                                       + [ConvModule(512, 256, 3, 2, 1), ConvModule(256, 256, 3, 2, 1)])

    def forward(self, maps):
        lateral = [conv(x) for conv, x in zip(self.lateral_convs, maps[1:])]
        for i in (2, 1):
            lateral[i - 1] = lateral[i - 1] + F.interpolate(lateral[i], size=lateral[i - 1].shape[2:], mode='nearest')
        outs = [conv(x) for conv, x in zip(self.fpn_convs, lateral)]
        outs.append(self.fpn_convs[3](maps[3]))  # add_extra_convs: on_input
        outs.append(self.fpn_convs[4](outs[3]))
        return outs


class RetinaHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls_convs = nn.ModuleList([ConvModule(256, 256, 3, 1, 1) for _ in range(4)])
        self.reg_convs = nn.ModuleList([ConvModule(256, 256, 3, 1, 1) for _ in range(4)])
        self.retina_cls = nn.Conv2d(256, A * CLASSES, 3, 1, 1)
        self.retina_reg = nn.Conv2d(256, A * 4, 3, 1, 1)

    def forward(self, levels, relu):
        outs = []
        for x in levels:
            c = r = x
            for conv in self.cls_convs:
                c = relu(conv(c))
            for conv in self.reg_convs:
                r = relu(conv(r))
            outs.append((self.retina_cls(c), self.retina_reg(r)))
        return outs


class RetinaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = ResNet18()
        self.neck = FPN()
        self.bbox_head = RetinaHead()

    def forward(self, x, relu=F.relu):
        """Per level: logits (N, anchors, CLASSES) and deltas (N, anchors, 4), anchors numbered by row, column, shape."""
        outs = self.bbox_head(self.neck(self.backbone(x, relu)), relu)
        return [(c.permute(0, 2, 3, 1).reshape(N, -1, CLASSES), r.permute(0, 2, 3, 1).reshape(N, -1, 4)) for c, r in outs]


def new_model(kind, seed):
    model = RetinaNet().double()
    state = model.state_dict()
    for name in state:
        if not name.endswith('num_batches_tracked'):
            state[name] = draw_parameter(seed, name, tuple(state[name].shape))
    model.load_state_dict(state)
    model.train()
    if kind == 'frozen':  # frozen_stages 1, norm_eval true
        backbone = model.backbone
        for module in backbone.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        for part in (backbone.conv1, backbone.bn1, backbone.layer1):
            for p in part.parameters():
                p.requires_grad = False
    return model


# ---- targets -------------------------------------------------------------------------------------------------------------------------


def feature_sizes():
    return [(-(-H // s), -(-W // s)) for s in STRIDES]


def make_anchors():
    """Boxes of all levels (float32, as MMDetection holds them) and, per image, whether its own padded size covers the cell."""
    boxes, valid = [], [[], []]
    scales = torch.tensor([4 * 2 ** (i / 3) for i in range(3)])
    h_ratio = torch.sqrt(torch.tensor([0.5, 1.0, 2.0]))
    w_ratio = 1 / h_ratio
    for stride, (fh, fw) in zip(STRIDES, feature_sizes()):
        ws = (stride * w_ratio[:, None] * scales[None]).reshape(-1)
        hs = (stride * h_ratio[:, None] * scales[None]).reshape(-1)
        base = torch.stack([-0.5 * ws, -0.5 * hs, 0.5 * ws, 0.5 * hs], 1)
        y, x = torch.meshgrid(torch.arange(fh) * stride, torch.arange(fw) * stride)  # indexing 'ij'
        shift = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4).float()
        boxes.append((base[None] + shift).reshape(-1, 4))
        for image, (ph, pw) in enumerate(PAD):
            inside = (y < -(-ph // stride) * stride) & (x < -(-pw // stride) * stride)
            valid[image].append(inside.reshape(-1, 1).expand(-1, A).reshape(-1))
    return torch.cat(boxes), [torch.cat(v) for v in valid]


def draw_boxes(seed, image):
    """Corners are whole pixels, so they are the same everywhere; sides are 12 pixels up to the whole image."""
    ph, pw = PAD[image]
    boxes, labels = [], []
    for g in range(GTS[image]):
        r = [int(v) for v in bits(seed, f'gt{image}.{g}', 5)]
        w, h = 12 + r[0] % (pw - 11), 12 + r[1] % (ph - 11)
        x, y = r[2] % (pw - w + 1), r[3] % (ph - h + 1)
        boxes.append([x, y, x + w, y + h])
        labels.append(r[4] % CLASSES)
    return torch.tensor(boxes, dtype=torch.float32), labels


def overlaps(a, b):
    lt, rb = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    common = wh[..., 0] * wh[..., 1]
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    return common / (area(a)[:, None] + area(b)[None] - common).clamp(min=1e-6)


def assign(gts, anchors):
    """MaxIoUAssigner with 0.5, 0.4, min_pos_iou 0."""
    iou = overlaps(gts, anchors)
    assigned = torch.full((len(anchors),), -1, dtype=torch.long)
    best, which = iou.max(0)
    assigned[(best >= 0) & (best < 0.4)] = 0
    assigned[best >= 0.5] = which[best >= 0.5] + 1
    for g in range(len(gts)):
        if iou[g].max() >= 0:
            assigned[iou[g] == iou[g].max()] = g + 1
    return assigned


def encode(p, g):
    """In double, from float32 boxes."""
    p, g = p.double(), g.double()
    px, py, pw, ph = (p[:, 0] + p[:, 2]) / 2, (p[:, 1] + p[:, 3]) / 2, p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
    gx, gy, gw, gh = (g[:, 0] + g[:, 2]) / 2, (g[:, 1] + g[:, 3]) / 2, g[:, 2] - g[:, 0], g[:, 3] - g[:, 1]
    return torch.stack([(gx - px) / pw, (gy - py) / ph, torch.log(gw / pw), torch.log(gh / ph)], 1)


def make_targets(seed):
    """labels (N, anchors): class, CLASSES, or -1; box targets (N, anchors, 4), zero where not positive; the normaliser."""
    anchors, valid = make_anchors()
    labels = torch.full((N, len(anchors)), -1, dtype=torch.long)
    deltas = torch.zeros(N, len(anchors), 4, dtype=torch.double)
    avg = 0
    for image in range(N):
        gts, classes = draw_boxes(seed, image)
        index = valid[image].nonzero()[:, 0]
        assigned = assign(gts, anchors[index])
        labels[image, index[assigned == 0]] = CLASSES
        positive = assigned > 0
        matched = assigned[positive] - 1
        labels[image, index[positive]] = torch.tensor(classes)[matched]
        deltas[image, index[positive]] = encode(anchors[index[positive]], gts[matched])
        avg += max(int(positive.sum()), 1)
    return labels, deltas, avg


# ---- losses --------------------------------------------------------------------------------------------------------------------------


def focal_sum(logits, labels, alpha=0.25, gamma=2.0):
    keep = labels >= 0
    x = logits[keep]
    y = F.one_hot(labels[keep], CLASSES + 1)[:, :CLASSES].double()
    p = torch.sigmoid(x)
    positive = alpha * (1 - p) ** gamma * F.softplus(-x)
    negative = (1 - alpha) * p ** gamma * F.softplus(x)
    return (y * positive + (1 - y) * negative).sum()


def losses(outs, targets):
    labels, deltas, avg = targets
    cls, box, start = [], [], 0
    for logits, pred in outs:
        part = slice(start, start + logits.shape[1])
        positive = (labels[:, part] >= 0) & (labels[:, part] < CLASSES)
        cls.append(focal_sum(logits, labels[:, part]) / avg)
        box.append((pred[positive] - deltas[:, part][positive]).abs().sum() / avg)
        start = part.stop
    return cls, box


# ---- fixtures ------------------------------------------------------------------------------------------------------------------------


def number(x):
    return f'{float(x):.10g}'


def summary(seed, name, tensor):
    x = tensor.detach().reshape(-1).numpy()
    where = bits(seed, name + '/sample', 64) % np.uint64(len(x))
    values = [np.sqrt((x * x).sum()), np.abs(x).max(), *x[where.astype(np.int64)]]
    values += [(x * uniform(seed, f'{name}/projection{i}', len(x))).sum() for i in range(8)]
    return ' '.join([name] + [number(v) for v in values])


def draw_image(seed):
    return draw(seed, 'image', (N, 3, H, W), 0, 2)


def write_fixture(kind, seed):
    model, image, targets = new_model(kind, seed), draw_image(seed), make_targets(seed)
    labels, deltas, avg = targets
    lines = [f'seed {seed}', f'avg_factor {avg}']
    for i, a in (labels != CLASSES).nonzero().tolist():
        c = int(labels[i, a])
        lines.append(' '.join(['label', str(i), str(a), str(c)] + ([number(v) for v in deltas[i, a]] if c >= 0 else [])))

    model.eval()  # what inference and the loss of validation see
    with torch.no_grad():
        for level, (logits, pred) in enumerate(model(image)):
            lines.append('output ' + summary(seed, f'level{level}.logits', logits))
            lines.append('output ' + summary(seed, f'level{level}.deltas', pred))
        cls, box = losses(model(image), targets)
        lines.append('eval_loss ' + ' '.join(number(v) for v in cls + box))

    model = new_model(kind, seed)
    cls, box = losses(model(image), targets)
    lines.append('loss ' + ' '.join(number(v) for v in cls + box))
    (sum(cls) + sum(box)).backward()
    for name, p in model.named_parameters():
        if p.requires_grad:
            lines.append('gradient ' + summary(seed, name, p.grad))
    if kind == 'training':
        for name, b in model.named_buffers():
            if not name.endswith('num_batches_tracked'):
                lines.append('buffer ' + summary(seed, name, b))

    model = new_model(kind, seed)
    trained = [p for p in model.parameters() if p.requires_grad]
    sgd = torch.optim.SGD(trained, lr=LR, momentum=MOMENTUM, weight_decay=DECAY)
    for _ in range(STEPS):
        cls, box = losses(model(image), targets)
        lines.append(f'step {number(sum(cls))} {number(sum(box))}')
        sgd.zero_grad()
        (sum(cls) + sum(box)).backward()
        sgd.step()
    with open(kind + '.txt', 'w') as out:
        out.write('\n'.join(lines) + '\n')


# ---- choosing seeds ------------------------------------------------------------------------------------------------------------------


def margin(kind, seed):
    smallest = [1.0]

    def relu(x):
        smallest[0] = min(smallest[0], float(x.abs().min() / x.std()))
        return F.relu(x)

    with torch.no_grad():
        new_model(kind, seed)(draw_image(seed), relu)
    return smallest[0]


def main():
    torch.set_num_threads(1)
    if len(sys.argv) == 3 and sys.argv[1] == '--search':
        for kind in SEEDS:
            found = max((margin(kind, seed), seed) for seed in range(int(sys.argv[2])))
            print(f'{kind}: seed {found[1]}, margin {found[0]:.3g}')
    elif all(kind in SEEDS for kind in sys.argv[1:]):
        for kind in sys.argv[1:] or SEEDS:
            write_fixture(kind, SEEDS[kind])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
