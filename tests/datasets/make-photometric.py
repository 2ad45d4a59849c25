#!/usr/bin/env python3
"""Writes photometric-golden.h: PhotoMetricDistortion of MMDetection 2.17 with given draws, by NumPy and OpenCV.

    python3 make-photometric.py > photometric-golden.h

The steps are those of the class, without its random choices: float32 BGR, brightness, contrast (mode 1),
cv2.cvtColor to HSV, saturation, hue, back, contrast (mode 0), order of channels.
"""
import cv2
import numpy as np

rng = np.random.default_rng(5)
pixels = rng.integers(0, 256, (16, 3), dtype=np.uint8)
pixels[0] = 0
pixels[1] = 255
pixels[2] = 77  # grey: no hue
pixels[3] = (255, 0, 0)
pixels[4] = (0, 255, 0)
pixels[5] = (0, 0, 255)
pixels[6] = (200, 200, 10)  # two equal maxima

# brightness, contrast, contrast first, saturation, hue, order
changes = [
    (0, 1, 0, 1, 0, (0, 1, 2)),
    (20.5, 1, 0, 1, 0, (0, 1, 2)),
    (-31.25, 1.5, 1, 1, 0, (0, 1, 2)),
    (0, 0.5, 0, 1, 0, (2, 0, 1)),
    (0, 1, 0, 0.5, 0, (0, 1, 2)),
    (0, 1, 0, 1.5, 0, (0, 1, 2)),
    (0, 1, 0, 1, 18, (0, 1, 2)),
    (0, 1, 0, 1, -18, (0, 1, 2)),
    (12.75, 1.3, 1, 0.7, 11.5, (1, 2, 0)),
    (-9.5, 0.8, 0, 1.4, -6.25, (2, 1, 0)),
]


def apply(rgb, brightness, contrast, first, saturation, hue, order):
    img = rgb[:, ::-1].astype(np.float32).reshape(-1, 1, 3)
    img = img + np.float32(brightness)
    if first:
        img = img * np.float32(contrast)
    img = cv2.cvtColor(img, cv2.COLOR_BGR2HSV)
    img[..., 1] *= np.float32(saturation)
    img[..., 0] += np.float32(hue)
    img[..., 0][img[..., 0] > 360] -= 360
    img[..., 0][img[..., 0] < 0] += 360
    img = cv2.cvtColor(img, cv2.COLOR_HSV2BGR)
    if not first:
        img = img * np.float32(contrast)
    img = img[..., list(order)]
    return img.reshape(-1, 3)[:, ::-1]


print("/* Written by make-photometric.py with OpenCV and NumPy. */")
print(f"#define GOLDEN_N_PIXELS {len(pixels)}")
print("static const guint8 golden_pixels[GOLDEN_N_PIXELS * 3] = { %s };" % ", ".join(map(str, pixels.ravel())))
print("static const struct")
print("{")
print("  RnPhotometric change;")
print("  double rgb[GOLDEN_N_PIXELS * 3]; /* neither rounded nor clipped */")
print("} golden_changes[] = {")
for c in changes:
    values = apply(pixels, *c)
    print("  { { %.6ff, %.6ff, %d, %.6ff, %.6ff, { %d, %d, %d } }," % (c[:5] + c[5]))
    print("    { %s } }," % ", ".join("%.9g" % v for v in values.ravel()))
print("};")
