#!/usr/bin/env python3
"""Reads a trace as strictly as its format is written down, and prints the number of spans of each category.

    check-trace.py FILE

The format: "Trace Event Format", JSON Object form. Strict JSON: no NaN, no name twice in an object.
"""
import json
import sys

NEEDED = {
    "X": {"name": str, "cat": str, "ph": str, "ts": float, "dur": float, "pid": int, "tid": int, "args": dict},
    "i": {"name": str, "ph": str, "ts": float, "pid": int, "tid": int, "s": str},
    "C": {"name": str, "ph": str, "ts": float, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "ph": str, "pid": int, "tid": int, "args": dict},
}


def refuse(text):
    raise ValueError(f"{text} is no JSON")


def once(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def check(event):
    needed = NEEDED[event["ph"]]
    assert event.keys() == needed.keys(), event
    for name, kind in needed.items():
        assert type(event[name]) is kind, event
    assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, event
    if event["ph"] == "C":
        assert all(type(v) in (int, float) for v in event["args"].values()), event


def check_nesting(spans):
    """Of one thread. In nanoseconds, which are whole."""
    spans = sorted((round(s["ts"] * 1000), -round(s["dur"] * 1000)) for s in spans)
    open_ends = []
    for start, minus_length in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        end = start - minus_length
        assert not open_ends or end <= open_ends[-1], (start, end)
        open_ends.append(end)


with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file, parse_constant=refuse, object_pairs_hook=once)
events = trace["traceEvents"]
for event in events:
    check(event)
names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
spans = [e for e in events if e["ph"] == "X"]
for thread in {e["tid"] for e in spans}:
    assert thread in names, thread
    check_nesting([e for e in spans if e["tid"] == thread])
counts = {}
for span in spans:
    counts[span["cat"]] = counts.get(span["cat"], 0) + 1
print(*(f"{category}:{n}" for category, n in sorted(counts.items())))
