#!/usr/bin/env python3
"""Asks TensorBoard's own reader what it sees in a folder of event files.

    check-tensorboard.py DIR TAG...

Prints, for each TAG, "TAG STEP:VALUE STEP:VALUE ..." with seven significant digits, after what a resumed run
made void was dropped; the text of a tag that is no scalar. Exits with 77 where TensorBoard is not installed.
"""
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util
except ImportError:
    sys.exit(77)


def main(folder, tags):
    reader = EventAccumulator(folder, size_guidance={"tensors": 0, "scalars": 0})
    reader.Reload()
    for tag in tags:
        if tag in reader.Tags()["scalars"]:
            points = [f"{p.step}:{p.value:.7g}" for p in reader.Scalars(tag)]
        else:
            points = []
            for p in reader.Tensors(tag):
                value = tensor_util.make_ndarray(p.tensor_proto)
                if value.dtype == object:
                    value = value.ravel()[0].decode()
                    points.append(f"{p.step}:{value.splitlines()[0].strip()}")
                else:
                    points.append(f"{p.step}:{float(value):.7g}")
        print(tag, *points)


main(sys.argv[1], sys.argv[2:])
