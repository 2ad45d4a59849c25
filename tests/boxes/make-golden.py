#!/usr/bin/env python3
"""Writes golden.h: what PyTorch and NumPy make of the formulas of MMDetection 2.17, for the tests of boxes/.

    python3 tests/boxes/make-golden.py > tests/boxes/golden.h     (made with torch 1.13, numpy 1.24)

Everything is done the long way that the C code avoids: all anchors times all boxes as one matrix, NMS with
one offset per class, average precision over whole arrays.
"""
import re

import numpy as np
import torch

rng = np.random.RandomState(7)
F = np.float32

versions = torch.__version__[:4], np.__version__[:4]
print("/* golden.h: written by make-golden.py (PyTorch %s, NumPy %s). */" % versions)
print("""#ifndef TESTS_BOXES_GOLDEN_H
#define TESTS_BOXES_GOLDEN_H

#include <stdint.h>
#include "boxes/box.h"
""")


def c_float(v):
    return "%sf" % re.sub(r"\.?0*p", "p", float(v).hex())


def emit_boxes(name, boxes):
    print("static const RnBox %s[] = {" % name)
    for b in boxes:
        print("  { %s }," % ", ".join(c_float(v) for v in b))
    print("};\n")


def emit_ints(name, values):
    print("static const int32_t %s[] = {" % name)
    for i in range(0, len(values), 16):
        print("  %s," % ", ".join(str(int(v)) for v in values[i:i + 16]))
    print("};\n")


def emit_floats(name, values):
    print("static const float %s[] = {" % name)
    for i in range(0, len(values), 5):
        print("  %s," % ", ".join(c_float(v) for v in values[i:i + 5]))
    print("};\n")


def random_boxes(n, width, height, low, high):
    x, y = rng.uniform(0, width - low, n), rng.uniform(0, height - low, n)
    w, h = np.exp(rng.uniform(np.log(low), np.log(high), (2, n)))
    boxes = np.stack([x, y, np.minimum(x + w, width), np.minimum(y + h, height)], 1)
    return np.round(boxes * 4).astype(F) / 4


# ---- anchors -----------------------------------------------------------------------------------------------
def base_anchors(base, scales, ratios, offset, scale_major):
    scales, ratios = torch.Tensor(scales), torch.Tensor(ratios)
    h_ratios = torch.sqrt(ratios)
    w_ratios = 1 / h_ratios
    if scale_major:
        ws = (base * w_ratios[:, None] * scales[None, :]).view(-1)
        hs = (base * h_ratios[:, None] * scales[None, :]).view(-1)
    else:
        ws = (base * scales[:, None] * w_ratios[None, :]).view(-1)
        hs = (base * scales[:, None] * h_ratios[None, :]).view(-1)
    c = offset * base
    return torch.stack([c - 0.5 * ws, c - 0.5 * hs, c + 0.5 * ws, c + 0.5 * hs], 1)


def grid_anchors(base, stride, height, width):
    y, x = torch.meshgrid(torch.arange(height) * stride, torch.arange(width) * stride, indexing="ij")
    shifts = torch.stack([x, y, x, y], -1).reshape(-1, 1, 4).type_as(base)
    return (base[None] + shifts).view(-1, 4)


octave = np.array([2 ** (i / 3) for i in range(3)]) * 4
strides = [8, 16, 32, 64, 128]
bases = [base_anchors(s, octave, [0.5, 1.0, 2.0], 0.0, True) for s in strides]
emit_boxes("golden_base_retina", torch.cat(bases).numpy())
emit_boxes("golden_base_scale_minor", base_anchors(12, [2.5, 7.0], [0.4, 1.0, 3.0], 0.5, False).numpy())

# ---- assignment --------------------------------------------------------------------------------------------
# A batch of 192 x 160 (rows x columns) with an image of 160 x 128.
sizes = [(-(-192 // s), -(-160 // s)) for s in strides]
anchors = torch.cat([grid_anchors(b, s, *hw) for b, s, hw in zip(bases, strides, sizes)])
flags = []
for (h, w), s in zip(sizes, strides):
    f = torch.zeros(h, w, 9, dtype=torch.bool)
    f[:min(-(-160 // s), h), :min(-(-128 // s), w)] = True
    flags.append(f.view(-1))
inside = torch.cat(flags)


def overlaps(a, b, mode="iou"):
    area_a, area_b = ((t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1]) for t in (a, b))
    wh = (torch.min(a[:, None, 2:], b[None, :, 2:]) - torch.max(a[:, None, :2], b[None, :, :2])).clamp(min=0)
    common = wh[..., 0] * wh[..., 1]
    union = area_a[:, None] + area_b[None] - common if mode == "iou" else area_a[:, None].expand_as(common)
    return common / torch.max(union, torch.tensor(1e-6))


def assign(anchors, gts, ignores, iof_thr, pos, neg, low, assign_all):
    iou = overlaps(gts, anchors)
    if iof_thr > 0:
        covered = overlaps(anchors, ignores, "iof").max(dim=1)[0] > iof_thr
        iou[:, covered] = -1
    best, arg = iou.max(dim=0)
    gt_best, gt_arg = iou.max(dim=1)
    out = torch.full((len(anchors),), -1, dtype=torch.long)
    out[(best >= 0) & (best < neg)] = 0
    out[best >= pos] = arg[best >= pos] + 1
    for g in range(len(gts)):
        if gt_best[g] >= low:
            if assign_all:
                out[iou[g] == gt_best[g]] = g + 1
            else:
                out[gt_arg[g]] = g + 1
    return out


gts = random_boxes(9, 128, 160, 6, 120)
gts[3] = [0, 16, 24, 40]  # symmetric about cells: several anchors at the same, best IoU
gts[8] = gts[2]
ignores = random_boxes(3, 128, 160, 20, 60)
emit_boxes("golden_gts", gts)
emit_boxes("golden_ignores", ignores)
cases = (("plain", -1, 0, True), ("ignore", 0.5, 0.3, True), ("first", -1, 0, False))
for name, iof_thr, low, assign_all in cases:
    part = assign(anchors[inside], torch.from_numpy(gts), torch.from_numpy(ignores), iof_thr, 0.5, 0.4, low,
                  assign_all)
    full = torch.full((len(anchors),), -1, dtype=torch.long)
    full[inside] = part
    positive = (full > 0).nonzero().view(-1)
    emit_ints("golden_%s_positive" % name, positive.tolist())
    emit_ints("golden_%s_gt" % name, (full[positive] - 1).tolist())
    emit_ints("golden_%s_negative_ignored" % name, [(full == 0).sum(), (full < 0).sum()])

# ---- coder -------------------------------------------------------------------------------------------------
means, stds = torch.tensor([0.0, 0.1, -0.2, 0.0]), torch.tensor([0.1, 0.1, 0.2, 0.25])
a, g = (torch.from_numpy(random_boxes(8, 300, 200, 8, 120)) for _ in range(2))
deltas = torch.stack([((g[:, 0] + g[:, 2]) * 0.5 - (a[:, 0] + a[:, 2]) * 0.5) / (a[:, 2] - a[:, 0]),
                      ((g[:, 1] + g[:, 3]) * 0.5 - (a[:, 1] + a[:, 3]) * 0.5) / (a[:, 3] - a[:, 1]),
                      torch.log((g[:, 2] - g[:, 0]) / (a[:, 2] - a[:, 0])),
                      torch.log((g[:, 3] - g[:, 1]) / (a[:, 3] - a[:, 1]))], 1)
deltas = (deltas - means) / stds
emit_boxes("golden_coder_anchors", a.numpy())
emit_boxes("golden_coder_gts", g.numpy())
emit_floats("golden_coder_deltas", deltas.view(-1).numpy())

# ---- NMS ---------------------------------------------------------------------------------------------------
K = 3
boxes = random_boxes(40, 120, 100, 30, 80)
scores = rng.permutation(np.arange(1, 40 * K + 1)).reshape(40, K).astype(F) / F(128)
scores[5] = scores[4]  # ties
labels = np.tile(np.arange(K), 40)
candidate = np.nonzero(scores.reshape(-1) > F(0.25))[0]
moved = boxes[candidate // K] + (labels[candidate] * (boxes.max() + 1))[:, None]
order = sorted(range(len(candidate)), key=lambda i: (-scores.reshape(-1)[candidate[i]], candidate[i]))
pairs = overlaps(torch.from_numpy(moved), torch.from_numpy(moved)).numpy()
kept = []
for i in order:
    if all(pairs[i, j] <= 0.5 for j in kept):
        kept.append(i)
emit_boxes("golden_nms_boxes", boxes)
emit_floats("golden_nms_scores", scores.reshape(-1))
emit_ints("golden_nms_kept", candidate[kept])  # box * 3 + class, best first


# ---- average precision -------------------------------------------------------------------------------------
def legacy_iou(a, b):
    area_a, area_b = ((t[:, 2] - t[:, 0] + F(1)) * (t[:, 3] - t[:, 1] + F(1)) for t in (a, b))
    lt, rb = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    wh = np.maximum(rb - lt + F(1), F(0))
    common = wh[..., 0] * wh[..., 1]
    return common / np.maximum(area_a[:, None] + area_b[None] - common, F(1e-6))


def match(dets, scores, gts, difficult):
    tp, fp = np.zeros(len(dets), F), np.zeros(len(dets), F)
    every = np.concatenate([gts, difficult])
    if len(every) == 0:
        return tp, fp + F(1)
    iou = legacy_iou(dets, every) if len(dets) else np.zeros((0, len(every)), F)
    taken = np.zeros(len(every), bool)
    for i in np.argsort(-scores, kind="stable"):
        best = iou[i].argmax()
        if iou[i, best] < 0.5:
            fp[i] = 1
        elif best < len(gts):
            tp[i], fp[i] = (0, 1) if taken[best] else (1, 0)
            taken[best] = True
    return tp, fp


def average_precision(recall, precision, mode):
    if mode == "area":
        r = np.concatenate([[0.0], recall, [1.0]])
        p = np.concatenate([[0.0], precision, [0.0]])
        for i in range(len(p) - 1, 0, -1):
            p[i - 1] = max(p[i - 1], p[i])
        step = np.nonzero(r[1:] != r[:-1])[0]
        return F(np.sum((r[step + 1] - r[step]) * p[step + 1]))
    ap = F(0)
    for t in np.arange(0, 1 + 1e-3, 0.1):
        p = precision[recall >= t]
        ap += p.max() if p.size else F(0)
    return F(ap / F(11))


n_images = 8
images = []
keys = ("dets", "scores", "det_labels", "det_images", "gts", "gt_labels", "gt_images", "gt_difficult")
rows = {key: [] for key in keys}
for i in range(n_images):
    n = rng.randint(0, 7)
    gt = random_boxes(n, 200, 150, 10, 90)
    gt_label, difficult = rng.randint(0, K, n), rng.rand(n) < 0.25
    near = np.clip(gt + rng.randint(-6, 7, gt.shape), 0, 200)
    det = np.concatenate([near, gt[:2], random_boxes(2, 200, 150, 10, 90)]).astype(F)
    det_label = np.concatenate([gt_label, gt_label[:2], rng.randint(0, K, 2)])
    score = rng.randint(1, 20, len(det)).astype(F) / F(20)  # with ties
    images.append((gt, gt_label, difficult, det, det_label, score))
    for key, values in zip(keys, (det, score, det_label, [i] * len(det), gt, gt_label, [i] * n, difficult)):
        rows[key].extend(values)
emit_boxes("golden_ap_dets", rows["dets"])
emit_floats("golden_ap_scores", rows["scores"])
emit_boxes("golden_ap_gts", rows["gts"])
for key in ("det_labels", "det_images", "gt_labels", "gt_images", "gt_difficult"):
    emit_ints("golden_ap_" + key, rows[key])
table = []
for c in range(K):
    tps, fps, all_scores, num = [], [], [], 0
    for gt, gt_label, difficult, det, det_label, score in images:
        mine, normal = det_label == c, (gt_label == c) & ~difficult
        tp, fp = match(det[mine], score[mine], gt[normal], gt[(gt_label == c) & difficult])
        tps.append(tp)
        fps.append(fp)
        all_scores.append(score[mine])
        num += int(normal.sum())
    order = np.argsort(-np.concatenate(all_scores), kind="stable")
    tp, fp = (np.cumsum(np.concatenate(v)[order], dtype=F) for v in (tps, fps))
    eps = np.finfo(F).eps
    recall, precision = tp / np.maximum(np.array([num]), eps), tp / np.maximum(tp + fp, eps)
    assert precision.dtype == F and recall.dtype == np.float64
    ap = [average_precision(recall, precision, mode) for mode in ("11points", "area")]
    table.append((num, len(tp), recall[-1], ap[0], ap[1]))
emit_ints("golden_ap_n_gts", [t[0] for t in table])
emit_ints("golden_ap_n_dets", [t[1] for t in table])
emit_floats("golden_ap_recall", [F(t[2]) for t in table])
emit_floats("golden_ap_11points", [t[3] for t in table])
emit_floats("golden_ap_area", [t[4] for t in table])
print("#endif")
