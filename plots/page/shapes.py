"""Sizes of the layers of bench/networks.json: neurons, parameters, FLOPs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

BYTES = 4  # of a number


class Layer(NamedTuple):
    """`neurons` and `map` are those of the output before pooling; `sent` is the output after it."""
    name: str
    filters: int | None
    map: int | None
    neurons: int
    parameters: int
    flops: float      # forward, of one sample
    sent: int         # numbers of one sample


class Network(NamedTuple):
    batch: int
    optimizer: str
    layers: list[Layer]

    @property
    def step_flops(self) -> float:
        """Products of a training step: forward and both gradients; the first layer needs none for
        its input."""
        return self.batch * sum((3 if i else 2) * layer.flops
                                for i, layer in enumerate(self.layers))


def networks(root: Path) -> dict[str, Network]:
    try:
        described = json.loads((root / "bench/networks.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: network_of(entry) for name, entry in described.items()}


def network_of(entry: dict[str, Any]) -> Network:
    channels, height = entry["input"]["channels"], entry["input"]["height"]
    layers: list[Layer] = []
    for layer in entry["layers"]:
        if layer["type"] == "convolution":
            kernel, groups = layer["kernel"], layer.get("groups", 1)
            height = (height + 2 * layer.get("pad", 0) - kernel) // layer.get("stride", 1) + 1
            weights = layer["filters"] * channels // groups * kernel * kernel
            channels = layer["filters"]
            neurons = channels * height * height
            layers.append(Layer(layer["name"], channels, height, neurons, weights + channels,
                                2.0 * weights * height * height, neurons))
        elif layer["type"] == "max_pool":
            height = (height + 2 * layer.get("pad", 0) - layer["window"]) // layer["stride"] + 1
            layers[-1] = layers[-1]._replace(sent=channels * height * height)
        elif layer["type"] == "fully_connected":
            inputs, outputs = channels * height * height, layer["outputs"]
            layers.append(Layer(layer["name"], None, None, outputs, inputs * outputs + outputs,
                                2.0 * inputs * outputs, outputs))
            channels, height = outputs, 1
    return Network(entry["batch"], entry["optimizer"]["type"], layers)
