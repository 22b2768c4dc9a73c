"""Draws problems of random sizes, in the form of bench/suites/<primitive>.csv, on standard output.

The suite `random` was drawn with --seed 1. Another seed gives problems that nothing was tuned on:

    python3 scripts/draw_problems.py matmul --count 60 --seed 7 > own.csv
    build/stepladder bench matmul --suite-file own.csv
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Callable

MAX_FLOPS = 2e10   # a larger product takes too long
MIN_FLOPS = 1e4    # a smaller one is a call and nothing else
MAX_FLOATS = 2e7   # of one operand


def log_uniform(draw: random.Random, low: int, high: int) -> int:
    """A whole number in [low, high]; its logarithm is distributed uniformly."""
    return int(low * ((high + 1) / low) ** draw.random())


def matmul(draw: random.Random) -> dict[str, object] | None:
    m, n, k = (log_uniform(draw, 1, 4096) for _ in range(3))
    form = draw.choice(["nn", "nt", "tn"])
    if not MIN_FLOPS <= 2 * m * n * k <= MAX_FLOPS:
        return None
    return {"name": f"random.{form}.{m}x{n}x{k}", "m": m, "n": n, "k": k,
            "transpose_a": int(form[0] == "t"), "transpose_b": int(form[1] == "t"),
            "epilogue": "", "triangle": ""}


def convolution(draw: random.Random) -> dict[str, object] | None:
    batch = log_uniform(draw, 1, 64)
    channels, filters = log_uniform(draw, 1, 512), log_uniform(draw, 1, 512)
    height, width = log_uniform(draw, 4, 128), log_uniform(draw, 4, 128)
    square = draw.random() < 0.5
    kernel_h = log_uniform(draw, 1, 11)
    kernel_w = kernel_h if square else log_uniform(draw, 1, 11)
    stride_h = draw.choice([1, 1, 1, 2, 3, 4])
    stride_w = stride_h if square else draw.choice([1, 1, 1, 2, 3, 4])
    pad_h, pad_w = draw.randint(0, kernel_h // 2), draw.randint(0, kernel_w // 2)
    direction = draw.choice(["forward", "backward_data", "backward_weights"])
    out_h = (height + 2 * pad_h - kernel_h) // stride_h + 1
    out_w = (width + 2 * pad_w - kernel_w) // stride_w + 1
    if out_h < 1 or out_w < 1 or kernel_h > height + 2 * pad_h or kernel_w > width + 2 * pad_w:
        return None
    flops = 2 * batch * filters * out_h * out_w * channels * kernel_h * kernel_w
    largest = max(batch * channels * height * width, batch * filters * out_h * out_w)
    if not MIN_FLOPS <= flops <= MAX_FLOPS or largest > MAX_FLOATS:
        return None
    return {"name": f"random.{direction}.n{batch}.c{channels}.{height}x{width}.k{filters}."
                    f"{kernel_h}x{kernel_w}.s{stride_h}x{stride_w}",
            "batch": batch, "in_channels": channels, "height": height, "width": width,
            "out_channels": filters, "kernel_h": kernel_h, "kernel_w": kernel_w,
            "stride_h": stride_h, "stride_w": stride_w, "pad_h": pad_h, "pad_w": pad_w,
            "direction": direction}


DRAWS: dict[str, Callable[[random.Random], dict[str, object] | None]] = {
    "matmul": matmul, "convolution": convolution}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("primitive", choices=DRAWS)
    parser.add_argument("--count", type=int, default=40, help="number of problems (40)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    rows: dict[object, dict[str, object]] = {}
    while len(rows) < options.count:
        if row := DRAWS[options.primitive](draw):
            rows.setdefault(row["name"], row)
    first, *_ = rows.values()
    writer = csv.DictWriter(sys.stdout, ["suite", *first, "source"], lineterminator="\n")
    writer.writeheader()
    for row in rows.values():
        writer.writerow({"suite": "random", **row,
                         "source": f"drawn log-uniformly; seed {options.seed}"})


if __name__ == "__main__":
    main()
