#!/usr/bin/env python3
"""Compares RetinaNet R50-FPN on photographs with the same model in PyTorch: from the JPEG to the detections.

    make tests/models/parity/dump-outputs
    check-photographs.py SOURCE BUILD VOC_FOLDER [ID...]        default: the first three images of its test list

The model is written down here in plain PyTorch, its random weights go through a .pth file, images through OpenCV, and selection,
decoding and suppression are done once more in NumPy. All of it in double precision, so it is the truth that float32 is compared
with. Checks, per image: the input is the same to 1e-6; logits and deltas of all anchors differ by at most 1e-4 of the largest
entry of their level; `runner eval` finds the same boxes, where scores that are closer than the logits' error may come in any order.

Needs PyTorch >= 1.8, NumPy and OpenCV. The photographs' folder has VOC's layout and three classes, such as BCCD.
"""
import json
import os
import subprocess
import sys
import tempfile

import cv2
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import make_fixtures as r18

r18.N = 1  # images in a batch

SEED = 3
MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
SCORE_THR, IOU_THR, NMS_PRE, MAX_PER_IMG = 0.05, 0.5, 1000, 100
LIMIT = 1e-4  # of the largest logit or delta

# ---- the model -----------------------------------------------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        cout = 4 * width
        self.conv1 = nn.Conv2d(cin, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, cout, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        cin = 64
        for i, n in enumerate((3, 4, 6, 3)):
            width = 64 << i
            blocks = [Bottleneck(cin if b == 0 else 4 * width, width, 2 if b == 0 and i > 0 else 1) for b in range(n)]
            setattr(self, f'layer{i + 1}', nn.Sequential(*blocks))
            cin = 4 * width

    def forward(self, x, relu):
        x = F.max_pool2d(relu(self.bn1(self.conv1(x))), 3, 2, 1)
        outs = []
        for i in range(1, 5):
            x = getattr(self, f'layer{i}')(x)
            outs.append(x)
        return outs


def new_model():
    model = r18.RetinaNet()
    model.backbone = ResNet50()
    model.neck.lateral_convs = nn.ModuleList([r18.ConvModule(c, 256, 1) for c in (512, 1024, 2048)])
    model.neck.fpn_convs[3] = r18.ConvModule(2048, 256, 3, 2, 1)
    state = model.state_dict()
    for name in state:
        if name.endswith('num_batches_tracked'):
            continue
        state[name] = r18.draw_parameter(SEED, name, tuple(state[name].shape)).float()
        if name.endswith('bn3.weight'):  # keeps the sum of sixteen blocks from growing
            state[name] *= 0.5
        if 'retina_cls.weight' in name:  # scores on both sides of the threshold, boxes that move
            state[name] *= 20
        if 'retina_reg.weight' in name:
            state[name] *= 5
    model.load_state_dict(state)
    return model.eval()


# ---- before and after it -------------------------------------------------------------------------------------------------------------


def prepare(path):
    image = cv2.imread(path)
    h, w = image.shape[:2]
    s = min(1000 / max(h, w), 600 / min(h, w))
    nw, nh = int(w * s + 0.5), int(h * s + 0.5)
    image = cv2.resize(image, (nw, nh), interpolation=cv2.INTER_LINEAR)[:, :, ::-1]
    x = (image.astype(np.float64) - MEAN) / STD
    x = np.pad(x, ((0, -nh % 32), (0, -nw % 32), (0, 0)))
    return x.transpose(2, 0, 1), (nh, nw), (nw / w, nh / h)


def base_anchors(stride):
    scales = np.array([4 * 2 ** (i / 3) for i in range(3)])
    h = np.sqrt([0.5, 1.0, 2.0])
    ws, hs = stride * (1 / h[:, None] * scales).reshape(-1), stride * (h[:, None] * scales).reshape(-1)
    return np.stack([-ws / 2, -hs / 2, ws / 2, hs / 2], 1)


def decode(level, index, deltas, width, size):
    stride = r18.STRIDES[level]
    cell, a = index // r18.A, index % r18.A
    shift = np.stack([cell % width, cell // width] * 2, 1) * stride
    p = base_anchors(stride)[a] + shift
    pw, ph = p[:, 2] - p[:, 0], p[:, 3] - p[:, 1]
    limit = np.log(1000 / 16)
    x = (p[:, 0] + p[:, 2]) / 2 + deltas[:, 0] * pw
    y = (p[:, 1] + p[:, 3]) / 2 + deltas[:, 1] * ph
    w, h = pw * np.exp(np.clip(deltas[:, 2], -limit, limit)), ph * np.exp(np.clip(deltas[:, 3], -limit, limit))
    boxes = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    return np.clip(boxes, 0, [size[1], size[0], size[1], size[0]])


def overlaps(box, boxes):
    wh = np.clip(np.minimum(box[2:], boxes[:, 2:]) - np.maximum(box[:2], boxes[:, :2]), 0, None)
    inter = wh[:, 0] * wh[:, 1]
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
    return inter / np.maximum(area(box) + area(boxes) - inter, 1e-6)


def detect(outputs, widths, size, scale):
    """Rows x1, y1, x2, y2, score, class of one image, by descending score."""
    boxes, scores = [], []
    for level, (logits, deltas) in enumerate(outputs):
        s = 1 / (1 + np.exp(-logits))
        index = np.argsort(-s.max(1), kind='stable')[:NMS_PRE]
        boxes.append(decode(level, index, deltas[index], widths[level], size) / [*scale, *scale])
        scores.append(s[index])
    boxes, scores = np.concatenate(boxes), np.concatenate(scores)
    found = []
    for c in range(r18.CLASSES):
        order = np.argsort(-scores[:, c], kind='stable')
        order = order[scores[order, c] > SCORE_THR]
        while len(order):
            best, order = order[0], order[1:]
            found.append([*boxes[best], scores[best, c], c])
            order = order[overlaps(boxes[best], boxes[order]) <= IOU_THR]
    return np.array(sorted(found, key=lambda row: -row[4])[:MAX_PER_IMG]).reshape(-1, 6)


# ---- the comparison ------------------------------------------------------------------------------------------------------------------


def compare_arrays(name, ours, truth):
    error = np.abs(ours - truth).max() / np.abs(truth).max()
    print(f'  {name:16} largest {np.abs(truth).max():10.4f}   difference {error:.1e} of it')
    return error


def compare_detections(ours, truth, error):
    """Pairs each detection with one of its class; @error bounds the logits' difference, so scores differ by a quarter of it."""
    box_error, score_error, unmatched, free = 0.0, 0.0, 0, list(range(len(ours)))
    for row in truth:
        near = [i for i in free if ours[i, 5] == row[5] and abs(ours[i, 4] - row[4]) <= error / 4 + 1e-6]
        near.sort(key=lambda i: np.abs(ours[i, :4] - row[:4]).max())
        if not near or np.abs(ours[near[0], :4] - row[:4]).max() > 0.1:
            unmatched += 1
            continue
        free.remove(near[0])
        box_error = max(box_error, np.abs(ours[near[0], :4] - row[:4]).max())
        score_error = max(score_error, abs(ours[near[0], 4] - row[4]))
    print(f'  detections: {len(ours)} and {len(truth)}, {unmatched} without a partner; boxes within {box_error:.1e} pixels, '
          f'scores within {score_error:.1e}')
    return len(ours) == len(truth) and unmatched == 0


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    source, build, folder, ids = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    if not ids:
        ids = open(os.path.join(folder, 'ImageSets/Main/test.txt')).read().split()[:3]
    model = new_model()
    with tempfile.TemporaryDirectory() as work:
        weights, ids_file = os.path.join(work, 'r50.pth'), os.path.join(work, 'ids.txt')
        torch.save({'meta': {}, 'state_dict': model.state_dict()}, weights)
        open(ids_file, 'w').write('\n'.join(ids) + '\n')
        config = os.path.join(source, 'configs/retinanet_voc.yaml')
        keys = ['classes=[RBC, WBC, Platelets]', 'model.bbox_head.num_classes=3', f'data_root={folder}/', f'work_dir={work}',
                f'data.val.ann_file={ids_file}', 'data.val.img_prefix=.']
        dump = [os.path.join(build, 'tests/models/parity/dump-outputs'), config, weights, work]
        subprocess.run(dump + keys + ['model.test_cfg.nms_pre=-1'], check=True)
        detections = os.path.join(work, 'detections.json')
        subprocess.run([os.path.join(build, 'runner/runner'), 'eval', config, weights, '--out', detections, '--set'] + keys,
                       check=True, stdout=subprocess.DEVNULL)
        found = json.load(open(detections))
        model.double()
        passed = True
        for n, id in enumerate(ids):
            image, size, scale = prepare(os.path.join(folder, 'JPEGImages', id + '.jpg'))
            read = lambda name, dtype=np.float32: np.fromfile(os.path.join(work, f'{n}.{name}'), dtype)
            print(f'{id}: {image.shape[2]}x{image.shape[1]}')
            passed &= compare_arrays('input', read('image').reshape(image.shape), image) <= 1e-6
            with torch.no_grad():
                outputs = [(c[0].numpy(), r[0].numpy()) for c, r in model(torch.from_numpy(image)[None])]
            largest = 0.0
            for level, (logits, deltas) in enumerate(outputs):
                index = read(f'{level}.index', np.int32)
                if sorted(index) != list(range(len(logits))):
                    sys.exit('not every anchor is there')
                ours = read(f'{level}.logits').reshape(logits.shape)
                passed &= compare_arrays(f'level {level} logits', ours, logits[index]) <= LIMIT
                passed &= compare_arrays(f'level {level} deltas', read(f'{level}.deltas').reshape(deltas.shape), deltas[index]) <= LIMIT
                largest = max(largest, np.abs(ours - logits[index]).max())
            widths = [-(-image.shape[2] // s) for s in r18.STRIDES]
            truth = detect(outputs, widths, size, scale)
            rows = [[x, y, x + w, y + h, d['score'], d['category_id']] for d in found if d['image_id'] == id for x, y, w, h in [d['bbox']]]
            passed &= compare_detections(np.array(rows).reshape(-1, 6), truth, largest)
    print('passed' if passed else 'FAILED')
    sys.exit(0 if passed else 1)


if __name__ == '__main__':
    main()
