"""Times training steps of one network in PyTorch, in the same way as `stepladder step`.

Prints one line of JSON: the version of PyTorch, the seconds of every step, and those of its phases
(forward, backward, update). On a CPU one process measures one number of threads in one mode,
because OpenMP threads are bound to cores when they start; on a GPU it can measure several modes.

On a GPU the pictures are in device memory, and the clock is read before and after many steps
without synchronization between them, because PyTorch launches kernels ahead of their execution.
The phases are timed separately, with a synchronization after each. In mode cuda_graph a step is one
launch and has no phases.
"""

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn


def pair(layer, name, default=None):
    """`kernel: 5` or `kernel_h: 5, kernel_w: 3`, as (height, width)."""
    if name in layer:
        return (layer[name], layer[name])
    return (layer.get(f"{name}_h", default), layer.get(f"{name}_w", default))


def layer_of(layer, shape):
    """The modules of one layer of networks.json, and its output shape (channels, height, width)."""
    channels, height, width = shape
    kind = layer["type"]
    if kind == "fully_connected":
        features = channels * height * width
        flatten = [nn.Flatten()] if (height, width) != (1, 1) else []
        return [*flatten, nn.Linear(features, layer["outputs"])], (layer["outputs"], 1, 1)
    if kind in ("convolution", "max_pool", "average_pool"):
        window = pair(layer, "kernel" if kind == "convolution" else "window")
        stride = pair(layer, "stride", 1 if kind == "convolution" else None)
        stride = tuple(s or w for s, w in zip(stride, window))
        pad = pair(layer, "pad", 0)
        size = [(n + 2 * p - w) // s + 1
                for n, p, w, s in zip((height, width), pad, window, stride)]
        if kind == "max_pool":
            return [nn.MaxPool2d(window, stride, pad)], (channels, *size)
        if kind == "average_pool":
            include = layer.get("count", "include_padding") == "include_padding"
            return [nn.AvgPool2d(window, stride, pad, count_include_pad=include)], (channels, *size)
        module = nn.Conv2d(channels, layer["filters"], window, stride, pad,
                           groups=layer.get("groups", 1))
        return [module], (layer["filters"], *size)
    if kind == "local_response_normalization":
        return [nn.LocalResponseNorm(layer.get("size", 5), layer.get("alpha", 1e-4),
                                     layer.get("beta", 0.75), layer.get("k", 2.0))], shape
    if kind == "dropout":
        return [nn.Dropout(layer.get("rate", 0.5))], shape
    simple = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
    if kind in simple:
        return [simple[kind]()], shape
    raise SystemExit(f"pytorch_step: unknown layer type {kind!r}")


def network_of(description):
    shape = tuple(description["input"][key] for key in ("channels", "height", "width"))
    modules = []
    for layer in description["layers"]:
        if layer["type"] == "softmax_cross_entropy":
            continue  # the loss
        found, shape = layer_of(layer, shape)
        modules += found
    return nn.Sequential(*modules)


def optimizer_of(description, model, in_graph):
    """The learning rate is 0: the weights do not change, the work is the same."""
    optimizer = description["optimizer"]
    kinds = {"all": (nn.Linear, nn.Conv2d), "fully_connected": (nn.Linear,),
             "convolution": (nn.Conv2d,)}
    decayed = [m.weight for m in model.modules()
               if isinstance(m, kinds[optimizer.get("weight_decay_on", "all")])]
    rest = [p for p in model.parameters() if not any(p is d for d in decayed)]
    groups = [{"params": decayed, "weight_decay": optimizer.get("weight_decay", 0.0)},
              {"params": rest, "weight_decay": 0.0}]
    kind = optimizer["type"]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=0.0, fused=True)
    if kind == "momentum":
        return torch.optim.SGD(groups, lr=0.0, momentum=optimizer.get("momentum", 0.9), fused=True)
    if kind == "adagrad":
        return torch.optim.Adagrad(groups, lr=0.0, fused=True)
    if kind == "adam":
        return torch.optim.Adam(groups, lr=0.0, fused=True, capturable=in_graph)
    return {"adadelta": torch.optim.Adadelta, "rmsprop": torch.optim.RMSprop}[kind](groups, lr=0.0)


class Training:
    """One training step of a network on its device."""

    def __init__(self, description, mode, device):
        layout = torch.channels_last if mode == "channels_last" else torch.contiguous_format
        self.device = device
        self.model = network_of(description).to(device, memory_format=layout).train()
        self.optimizer = optimizer_of(description, self.model, in_graph=mode == "cuda_graph")
        size = [description["input"][key] for key in ("channels", "height", "width")]
        images = torch.rand(description["batch"], *size, device=device)
        self.images = images.contiguous(memory_format=layout)
        self.labels = torch.randint(description["classes"], (description["batch"],), device=device)
        loss_of = nn.CrossEntropyLoss()
        self.forward = lambda: loss_of(self.model(self.images), self.labels)
        if mode == "compile":
            self.forward = torch.compile(self.forward)

    def now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def step(self, mark=lambda: None):
        """Calls `mark` before the step and after each phase; returns the list of its results."""
        marks = [mark()]
        loss = self.forward()
        marks.append(mark())
        loss.backward()
        marks.append(mark())
        self.optimizer.step()
        self.optimizer.zero_grad()
        marks.append(mark())
        return marks

    def phases(self):
        """Seconds of forward, backward and update of one step, with synchronization after each."""
        marks = self.step(self.now)
        return [after - before for before, after in zip(marks, marks[1:])]

    def as_graph(self):
        """A function that launches a whole step at once."""
        warm_up = torch.cuda.Stream()  # capture needs warm-up steps on another stream
        warm_up.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm_up):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(warm_up)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay


def measure(training, step, seconds):
    """Seconds per step, measured over at least ten series of steps of `seconds` / 100 each."""
    for _ in range(5):
        step()
    start = training.now()
    step()
    at_once = max(1, round(seconds / 100 / (training.now() - start)))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = training.now()
        for _ in range(at_once):
            step()
        times.append((training.now() - start) / at_once)
    return times


def measure_mode(description, options, mode, tf32):
    """A dictionary with the results of one mode."""
    torch.manual_seed(1)
    # By default PyTorch uses TF32 for convolutions but not for matrix products.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    training = Training(description, mode, torch.device(options.device))
    if options.device == "cpu":  # synchronous: a step is the sum of its phases
        for _ in range(5):
            training.phases()
        steps = []
        end = time.perf_counter() + options.seconds
        while len(steps) < 10 or time.perf_counter() < end:
            steps.append(training.phases())
        total = [sum(step) for step in steps]
    elif mode == "cuda_graph":
        total, steps = measure(training, training.as_graph(), options.seconds), []
    else:
        total = measure(training, training.step, options.seconds)
        steps = [training.phases() for _ in range(20)]
    return {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        "total": total,
        "phases": {name: statistics.median(times)
                   for name, times in zip(("forward", "backward", "update"), zip(*steps))},
    }


def serve(description, options):
    """Measures the mode in each line of standard input, `MODE` or `MODE tf32`."""
    for line in sys.stdin:
        mode, *tf32 = line.split()
        try:
            result = measure_mode(description, options, mode, bool(tf32))
        except Exception as error:  # of one mode: the others can still be measured
            result = {"error": str(error).strip().splitlines()[-1] if str(error).strip()
                      else repr(error)}
        print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="a network in the file")
    parser.add_argument("--file", required=True, help="networks.json")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--mode", choices=["eager", "channels_last", "compile", "cuda_graph"],
                        help="by default the modes that standard input names, one in a line")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tf32", action="store_true", help="allow TF32; the default is fp32 only")
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="measuring time; at least 10 steps are measured")
    options = parser.parse_args()
    if options.mode == "cuda_graph" and options.device != "cuda":
        parser.error("--mode cuda_graph needs --device cuda")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("pytorch_step: this PyTorch finds no CUDA device")
    torch.set_num_threads(options.threads)
    with open(options.file, encoding="utf-8") as file:
        description = json.load(file)[options.network]
    if options.mode is None:
        serve(description, options)
    else:
        print(json.dumps(measure_mode(description, options, options.mode, options.tf32)))


if __name__ == "__main__":
    main()
