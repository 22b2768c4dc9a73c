"""Finds cuBLAS and cuDNN among NVIDIA's Python packages, which PyTorch brings along: nvidia_packages.py INCLUDE

Prints `prefix FOLDER` for each package whose headers the CUDA toolkit lacks, INCLUDE being the toolkit's headers, and
`libraries FOLDER` for each folder that holds one of the libraries.
"""

import importlib.util
import sys
from pathlib import Path

HEADERS = {"cublas": "cublas_v2.h", "cudnn": "cudnn.h"}


def main(include):
    spec = importlib.util.find_spec("nvidia")
    packages = [path for folder in spec.submodule_search_locations for path in sorted(Path(folder).iterdir())] if spec else []
    for name, header in HEADERS.items():
        for package in packages:
            if not (Path(include) / header).exists() and (package / "include" / header).exists():
                print("prefix", package)
            if any((package / "lib").glob(f"lib{name}.so.*")):
                print("libraries", package / "lib")


if __name__ == "__main__":
    main(sys.argv[1])
