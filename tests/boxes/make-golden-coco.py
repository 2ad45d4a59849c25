#!/usr/bin/env python3
"""Writes golden-coco.h: what pycocotools makes of random and crafted detections, for test-coco-ap.c.

    python3 tests/boxes/make-golden-coco.py > tests/boxes/golden-coco.h

Made with pycocotools 2.0 and NumPy 2.4.

Coordinates are multiples of a quarter and scores of 1/32, so that there are ties and overlaps that meet a
threshold exactly. Difficult boxes are ignored as `ignore` and `iscrowd` 0; COCOeval takes the flag from
`iscrowd` alone, so _prepare is changed here.
"""
import contextlib
import io
import re

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

F = np.float32


class Eval(COCOeval):
    def _prepare(self):
        super()._prepare()
        for gts in self._gts.values():
            for gt in gts:
                gt["ignore"] = gt["difficult"]


def evaluate(n_images, n_classes, dets, gts):
    """dets: rows of image, label, x1, y1, x2, y2, score; gts: ..., difficult. Gives stats and AP of classes."""
    def box(r):
        return [float(r[2]), float(r[3]), float(r[4]) - float(r[2]), float(r[5]) - float(r[3])]

    images = [{"id": i, "width": 1000, "height": 1000} for i in range(n_images)]
    categories = [{"id": c, "name": str(c)} for c in range(n_classes)]
    annotations = []
    for r in sorted(gts, key=lambda r: r[6]):  # normal ones first
        b = box(r)
        annotations.append({"id": len(annotations) + 1, "image_id": int(r[0]), "category_id": int(r[1]),
                            "bbox": b, "area": b[2] * b[3], "iscrowd": 0, "difficult": int(r[6])})
    results = [{"image_id": int(r[0]), "category_id": int(r[1]), "bbox": box(r), "score": float(r[6])}
               for r in dets]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {"info": {}, "images": images, "categories": categories, "annotations": annotations}
        coco.createIndex()
        run = Eval(coco, coco.loadRes(results) if results else COCO(), "bbox")
        run.params.imgIds, run.params.catIds = list(range(n_images)), list(range(n_classes))
        run.evaluate()
        run.accumulate()
        run.summarize()
    per_class = []
    for c in range(n_classes):
        p = run.eval["precision"][:, :, c, 0, -1]
        per_class.append(np.mean(p[p > -1]) if (p > -1).any() else -1)
    return run.stats, per_class


def random_case(seed, n_images, n_classes, n_gts, n_extra, difficult, sizes):
    """Objects, some of them found once or twice, with some noise; and detections of nothing."""
    rng = np.random.RandomState(seed)
    gts, dets = [], []

    def quarter(v):
        return float(F(np.round(v * 4) / 4))

    def some_box():
        side = np.exp(rng.uniform(np.log(sizes[0]), np.log(sizes[1]), 2))
        x, y = rng.uniform(0, 300, 2)
        return [quarter(v) for v in (x, y, x + side[0], y + side[1])]

    def score():
        return rng.randint(1, 33) / 32

    for _ in range(n_gts):
        image, label, box = rng.randint(n_images), rng.randint(n_classes), some_box()
        gts.append([image, label] + box + [int(rng.rand() < difficult)])
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            noise = rng.choice([0, 0.03, 0.1, 0.2]) * max(box[2] - box[0], box[3] - box[1])
            near = [quarter(v + rng.uniform(-noise, noise)) for v in box]
            dets.append([image, label] + near + [score()])
    for _ in range(n_extra):
        dets.append([rng.randint(n_images), rng.randint(n_classes)] + some_box() + [score()])
    return n_images, n_classes, dets, gts


def crafted():
    """Exact overlaps, doubles, areas on the borders of the ranges, over 100 detections, empty classes."""
    d, g = [], []
    g += [[0, 0, 0, 0, 10, 10, 0], [0, 0, 0, 0, 10, 20, 0], [0, 0, 100, 0, 132, 32, 0],
          [0, 0, 100, 100, 196, 196, 0]]
    d += [[0, 0, 0, 0, 10, 20, .5], [0, 0, 0, 0, 10, 10, .5], [0, 0, 0, 0, 10, 15, .5],
          [0, 0, 100, 0, 132, 16, .75], [0, 0, 100, 0, 132, 32, .25], [0, 0, 100, 100, 196, 196, 1],
          [0, 0, 100, 100, 196, 196, 1]]
    g += [[1, 1, 10, 10, 50, 50, 1], [1, 1, 12, 10, 50, 50, 0], [1, 1, 200, 200, 260, 260, 1]]
    d += [[1, 1, 10, 10, 50, 50, .9375], [1, 1, 10, 10, 50, 49, .875], [1, 1, 11, 10, 50, 50, .5],
          [1, 1, 200, 200, 260, 260, .75], [1, 1, 200, 200, 260, 259, .625]]
    # A class with more than 100 detections: the best one comes late, and one that would hit is the 101st.
    g += [[2, 2, 10, 10, 20, 20, 0], [2, 2, 30, 30, 130, 130, 0], [2, 2, 7, 7, 47, 47, 0]]
    d += [[2, 2, 200 + i, 200, 210 + i, 210, .5] for i in range(99)]
    d += [[2, 2, 7, 7, 47, 47, .5]] + [[2, 2, 200 + i, 300, 210 + i, 310, .5] for i in range(9)]
    d += [[2, 2, 10, 10, 20, 20, .75], [2, 2, 30, 30, 130, 130, .25]]
    # Class 3 has only detections, class 4 only boxes, class 5 only difficult boxes; a box without area.
    d += [[0, 3, 0, 0, 9, 9, .5], [1, 5, 0, 0, 30, 30, .5]]
    g += [[1, 4, 0, 0, 30, 30, 0], [1, 5, 0, 0, 30, 30, 1], [0, 4, 5, 5, 5, 20, 0]]
    return 3, 6, d, g


def number(v):
    return re.sub(r"\.0$", "", repr(float(v)))


def emit(name, case):
    n_images, n_classes, dets, gts = case
    stats, per_class = evaluate(*case)
    for kind, rows in (("dets", dets), ("gts", gts)):
        print("static const CocoRow coco_%s_%s[] = {" % (name, kind))
        for r in rows or [[0] * 7]:
            corners = ", ".join(number(v) for v in r[2:6])
            print("  { %d, %d, { %s }, %s }," % (r[0], r[1], corners, number(r[6])))
        print("};")
    for kind, values in (("stats", stats), ("class", per_class)):
        print("static const double coco_%s_%s[] = {" % (name, kind))
        for v in values:
            print("  %s," % float(v).hex())
        print("};")
    print()
    cases.append("  { \"%s\", %d, %d, coco_%s_dets, %d, coco_%s_gts, %d, coco_%s_stats, coco_%s_class },"
                 % (name, n_images, n_classes, name, len(dets), name, len(gts), name, name))


cases = []
print("""/* golden-coco.h: written by make-golden-coco.py (pycocotools). */
#ifndef TESTS_BOXES_GOLDEN_COCO_H
#define TESTS_BOXES_GOLDEN_COCO_H

#include "boxes/box.h"

/* The last member is the score of a detection, or 1 for a difficult box. */
typedef struct
{
  int image, label;
  RnBox box;
  float last;
} CocoRow;

typedef struct
{
  const char *name;
  int n_images, n_classes;
  const CocoRow *dets;
  int n_dets;
  const CocoRow *gts;
  int n_gts;
  const double *stats, *class_ap;
} CocoCase;
""")
emit("random", random_case(1, 12, 3, 60, 30, 0.2, (6, 150)))
emit("crowded", random_case(2, 3, 2, 60, 60, 0.1, (8, 40)))
emit("large", random_case(3, 5, 4, 20, 10, 0, (100, 300)))
emit("crafted", crafted())
emit("nothing_found", (2, 2, [], [[0, 0, 0, 0, 20, 20, 0], [1, 1, 0, 0, 200, 200, 0]]))
print("static const CocoCase coco_cases[] = {\n%s\n};\n\n#endif" % "\n".join(cases))
