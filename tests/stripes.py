"""A data set and networks so small that a training takes a second."""

import random
import struct


def write_stripes(folder, train, test):
    """So many images in MNIST's files: noise with a bright row or column; which one it is, is the
    label."""
    draw = random.Random(1)
    folder.mkdir()
    for part, count in (("train", train), ("t10k", test)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pixels = bytes(draw.randrange(60) + (180 if (y if label < 5 else x) == label % 5 else 0)
                       for label in labels for y in range(6) for x in range(6))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, count, 6, 6) + pixels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + labels)
    return folder


def network_of_stripes(batch, dropout=(), **optimizer):
    return {
        "input": {"channels": 1, "height": 6, "width": 6}, "classes": 10, "batch": batch,
        "layers": [{"type": "fully_connected", "outputs": 16}, {"type": "relu"},
                   *({"type": "dropout", "rate": rate} for rate in dropout),
                   {"type": "fully_connected", "outputs": 10}, {"type": "softmax_cross_entropy"}],
        "optimizer": optimizer}
