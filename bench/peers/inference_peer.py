"""Times requests to one network in PyTorch or ONNX Runtime, with the weights and images of a file
that `stepladder infer --export` wrote.

Prints one line of JSON: the version of the framework, and the seconds of every request by batch.
The logits must agree with the reference in the file; a request is timed as there: the images are in
memory, and the probabilities too at its end.
"""

import argparse
import json
import struct
import time
from pathlib import Path

import numpy as np

LARGEST_ERROR = 1e-4  # of a logit, as a part of the largest logit
LEAST_REQUESTS = 10


def read_export(path):
    """The names of the layers with weights in order, and the arrays by name."""
    content = Path(path).read_bytes()
    line, _, rest = content.partition(b"\n")
    if line != b"stepladder checkpoint 1":
        raise SystemExit(f"inference_peer: {path} was not written by stepladder infer --export")
    size, = struct.unpack_from("<Q", rest)
    header = json.loads(rest[8:8 + size])
    arrays, at = {}, 8 + size
    for array in header["arrays"]:
        arrays[array["name"]] = np.frombuffer(rest, "<f4", array["length"], at)
        at += 4 * array["length"]
    layers = [text.split()[1:3] for text in header["identity"] if text.startswith("layer: ")]
    return [name for name, kind in layers if kind in ("fully_connected", "convolution")], arrays


def require_agreement(logits, reference):
    error = float(np.max(np.abs(logits - reference)) / np.max(np.abs(reference)))
    if not error <= LARGEST_ERROR:
        raise SystemExit(f"inference_peer: the logits differ from ours by {error:.2g} of the "
                         f"largest, expected at most {LARGEST_ERROR:g}")


def seconds_of_requests(request, seconds):
    """Of requests that follow each other for so many seconds, after one that does not count."""
    request()
    found = []
    end = time.perf_counter() + seconds
    while len(found) < LEAST_REQUESTS or time.perf_counter() < end:
        start = time.perf_counter()
        request()
        found.append(time.perf_counter() - start)
    return found


class PyTorch:
    def __init__(self, description, names, arrays, threads, compiled):
        import torch

        from pytorch_step import network_of

        torch.set_num_threads(threads)
        self.torch, self.version, self.compiled = torch, torch.__version__, compiled
        self.model = network_of(description).eval()
        with_weights = [module for module in self.model if hasattr(module, "weight")]
        with torch.no_grad():
            for name, module in zip(names, with_weights, strict=True):
                weights = torch.tensor(arrays[f"{name}.weights"])
                if module.weight.dim() == 2:  # ours is [in, out]
                    weights = weights.reshape(module.weight.shape[::-1]).T
                module.weight.copy_(weights.reshape(module.weight.shape))
                module.bias.copy_(torch.tensor(arrays[f"{name}.biases"]))

    def service(self, images):
        """Logits, and a function that serves one request."""
        torch = self.torch
        inputs = torch.tensor(images)
        model = self.model
        if self.compiled:
            torch.compiler.reset()
            model = torch.compile(self.model, dynamic=False)

        def request():
            with torch.inference_mode():
                return torch.softmax(model(inputs), 1)

        with torch.inference_mode():
            return model(inputs).numpy(), request


class OnnxRuntime:
    def __init__(self, description, names, arrays, threads):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        model = onnx_model(description, names, arrays)
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])

    def service(self, images):
        inputs = {"images": images}

        def request():
            return self.session.run(["probabilities"], inputs)[0]

        return self.session.run(["logits"], inputs)[0], request


def onnx_model(description, names, arrays):
    """The network as ONNX operators, with inputs `images` and outputs `logits`, `probabilities`."""
    from onnx import TensorProto, checker, helper, numpy_helper

    from pytorch_step import pair

    channels, height, width = (description["input"][key]
                               for key in ("channels", "height", "width"))
    nodes, constants, names, at = [], [], iter(names), "images"

    def add(operator, inputs=(), output=None, **attributes):
        nonlocal at
        output = output or f"{operator.lower()}{len(nodes)}"
        nodes.append(helper.make_node(operator, [at, *inputs], [output], **attributes))
        at = output

    def constant(name, values):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def window_of(layer, name):
        window = pair(layer, name)
        stride = pair(layer, "stride", 1 if name == "kernel" else None)
        return {"kernel_shape": window, "strides": [s or w for s, w in zip(stride, window)],
                "pads": [*pair(layer, "pad", 0)] * 2}

    simple = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}
    for layer in description["layers"]:
        kind = layer["type"]
        if kind == "fully_connected":
            name = next(names)
            weights = arrays[f"{name}.weights"].reshape(-1, layer["outputs"])
            add("Flatten")
            add("Gemm", [constant(f"{name}.weights", weights),
                         constant(f"{name}.biases", arrays[f"{name}.biases"])])
        elif kind == "convolution":
            name, window = next(names), window_of(layer, "kernel")
            weights = arrays[f"{name}.weights"].reshape(layer["filters"], -1,
                                                        *window["kernel_shape"])
            add("Conv", [constant(f"{name}.weights", weights),
                         constant(f"{name}.biases", arrays[f"{name}.biases"])],
                group=layer.get("groups", 1), **window)
        elif kind == "max_pool":
            add("MaxPool", **window_of(layer, "window"))
        elif kind == "average_pool":
            include = layer.get("count", "include_padding") == "include_padding"
            add("AveragePool", count_include_pad=int(include), **window_of(layer, "window"))
        elif kind == "local_response_normalization":
            add("LRN", size=layer.get("size", 5), alpha=float(layer.get("alpha", 1e-4)),
                beta=float(layer.get("beta", 0.75)), bias=float(layer.get("k", 2)))
        elif kind in simple:
            add(simple[kind])
        elif kind == "softmax_cross_entropy":
            add("Flatten", output="logits")
            add("Softmax", output="probabilities", axis=1)
        elif kind != "dropout":
            raise SystemExit(f"inference_peer: unknown layer type {kind!r}")
    classes = description["classes"]
    graph = helper.make_graph(
        nodes, "network",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT,
                                       ["batch", channels, height, width])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", classes])
         for name in ("logits", "probabilities")], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8  # of that operator set: older runtimes read it too
    checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="a network in the file")
    parser.add_argument("--framework", choices=["eager", "compile", "onnxruntime"], required=True)
    parser.add_argument("--file", required=True, help="networks.json")
    parser.add_argument("--export", required=True, help="file of stepladder infer --export")
    parser.add_argument("--batch", required=True, help="such as 1,8,64")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each batch")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        description = json.load(file)[options.network]
    names, arrays = read_export(options.export)
    if options.framework == "onnxruntime":
        peer = OnnxRuntime(description, names, arrays, options.threads)
    else:
        peer = PyTorch(description, names, arrays, options.threads, options.framework == "compile")
    shape = [description["input"][key] for key in ("channels", "height", "width")]
    images = arrays["images"].reshape(-1, *shape)
    reference = arrays["logits"].reshape(len(images), -1)
    latencies = {}
    for batch in map(int, options.batch.split(",")):
        logits, request = peer.service(np.ascontiguousarray(images[:batch]))
        require_agreement(logits, reference[:batch])
        latencies[batch] = seconds_of_requests(request, options.seconds)
    print(json.dumps({"version": peer.version, "latencies": latencies}))


if __name__ == "__main__":
    main()
