#!/usr/bin/env python3
"""Compares decoding, resizing and loading with OpenCV. By hand; needs numpy and opencv-python-headless.

    make tests/datasets/opencv-peer
    compare-opencv.py pixels PEER IMAGE...        decoded and resized pixels, per scale
    compare-opencv.py speed PEER DIR [SECONDS]    images a second of one thread each, in turns

PEER is the built tests/datasets/opencv-peer, DIR a folder in VOC's layout. `speed` does with OpenCV and numpy what
the training pipeline does: imread, resize, flip, BGR to RGB, normalise, pad, CHW. Pin it to one core (taskset -c 0).
"""
import pathlib
import statistics
import subprocess
import sys
import time
import cv2
import numpy as np

SCALES = [(1000, 600), (1333, 800), (640, 480), (320, 240)]
MEAN = np.array([123.675, 116.28, 103.53])
STD = np.array([58.395, 57.12, 57.375])


def fitted(width, height, scale):
    """mmcv.rescale_size."""
    factor = min(max(scale) / max(width, height), min(scale) / min(width, height))
    return int(width * factor + 0.5), int(height * factor + 0.5)


def ours(peer, *args):
    return np.frombuffer(subprocess.run([peer, *map(str, args)], check=True, stdout=subprocess.PIPE).stdout, np.uint8)


def report(what, pairs):
    """@pairs: (a, b) of equal shapes."""
    different = [np.abs(a.astype(int) - b.astype(int)) for a, b in pairs]
    n = sum(int((d > 0).sum()) for d in different)
    worst = max(int(d.max()) for d in different)
    print(f"{what}: {len(pairs)} images, {n} of {sum(d.size for d in different)} bytes differ, by at most {worst}")


def pixels(peer, paths):
    decoded, resized = [], {scale: [] for scale in SCALES}
    for path in paths:
        theirs = cv2.imread(path)[..., ::-1]
        height, width = theirs.shape[:2]
        mine = ours(peer, "decode", path).reshape(theirs.shape)
        decoded.append((mine, theirs))
        for scale in SCALES:
            w, h = fitted(width, height, scale)
            # Of our decoded pixels, so that a difference of the decoders does not count twice.
            golden = cv2.resize(np.ascontiguousarray(mine), (w, h))
            resized[scale].append((ours(peer, "resize", path, w, h).reshape(h, w, 3), golden))
    print("OpenCV", cv2.__version__)
    report("decode", decoded)
    for scale in SCALES:
        report(f"resize into {scale[0]} x {scale[1]}", resized[scale])


def load(path, flip):
    image = cv2.imread(path)
    size = fitted(image.shape[1], image.shape[0], (1000, 600))
    image = cv2.resize(image, size)
    if flip:
        image = cv2.flip(image, 1)
    image = image.astype(np.float32)  # mmcv.imnormalize_
    cv2.cvtColor(image, cv2.COLOR_BGR2RGB, image)
    cv2.subtract(image, np.float64(MEAN.reshape(1, -1)), image)
    cv2.multiply(image, 1 / np.float64(STD.reshape(1, -1)), image)
    right, bottom = -image.shape[1] % 32, -image.shape[0] % 32
    image = cv2.copyMakeBorder(image, 0, bottom, 0, right, cv2.BORDER_CONSTANT, value=0)
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def opencv_rate(paths, seconds):
    for path in paths:
        load(path, False)
    n, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for i, path in enumerate(paths):
            load(path, i % 2 == 0)
        n += len(paths)
    return n / (time.perf_counter() - start)


def speed(peer, folder, seconds):
    cv2.setNumThreads(1)
    paths = sorted(str(path) for path in pathlib.Path(folder, "JPEGImages").iterdir())
    rates = []
    for _ in range(5):
        theirs = opencv_rate(paths, seconds)
        out = subprocess.run([peer, "bench", folder, str(seconds)], check=True, stdout=subprocess.PIPE)
        rates.append((float(out.stdout), theirs))
        print(f"ours {rates[-1][0]:.1f}/s, OpenCV {theirs:.1f}/s, ratio {rates[-1][0] / theirs:.3f}", flush=True)
    print(f"OpenCV {cv2.__version__}, median ratio {statistics.median(a / b for a, b in rates):.3f}")


def main(args):
    if len(args) >= 3 and args[0] == "pixels":
        pixels(args[1], args[2:])
    elif len(args) >= 3 and args[0] == "speed":
        speed(args[1], args[2], float(args[3]) if len(args) > 3 else 3)
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
