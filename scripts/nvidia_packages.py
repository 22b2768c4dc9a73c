"""Finds cuBLAS and cuDNN in NVIDIA's Python packages, which PyTorch installs.

    nvidia_packages.py INCLUDE

INCLUDE holds the headers of the CUDA toolkit. Prints `prefix FOLDER` for each package with headers
that the toolkit lacks, and `libraries FOLDER` for each folder with one of the libraries.
"""

import importlib.util
import sys
from pathlib import Path

HEADERS = {"cublas": "cublas_v2.h", "cudnn": "cudnn.h"}


def main(include):
    spec = importlib.util.find_spec("nvidia")
    packages = [path for folder in (spec.submodule_search_locations if spec else ())
                for path in sorted(Path(folder).iterdir())]
    for name, header in HEADERS.items():
        for package in packages:
            if not (Path(include) / header).exists() and (package / "include" / header).exists():
                print("prefix", package)
            if any((package / "lib").glob(f"lib{name}.so.*")):
                print("libraries", package / "lib")


if __name__ == "__main__":
    main(sys.argv[1])
