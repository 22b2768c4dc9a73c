"""Prints the folders of NVIDIA's Python packages that hold cuBLAS or cuDNN, where the CUDA toolkit does not.

nvidia_packages.py INCLUDE: the toolkit's headers. Each folder that is printed has an include/ and a lib/.
"""

import importlib.util
import sys
from pathlib import Path


def main(include):
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations] if spec else []
    found = {}
    for header in ("cublas_v2.h", "cudnn.h"):
        if not (Path(include) / header).exists():
            matches = [path for folder in folders for path in sorted(folder.glob(f"*/include/{header}"))]
            found |= {path.parent.parent: None for path in matches[:1]}
    for folder in found:
        print(folder)


if __name__ == "__main__":
    main(sys.argv[1])
