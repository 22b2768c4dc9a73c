"""scripts/gpu_bundle.sh: the folder that it packs is small, the same each time, licensed, and enough to build from.

These tests use the packages of this machine, and pack them for real.
"""

import hashlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

MOST_BYTES = 40 << 20


def pack(folder):
    return subprocess.run([ROOT / "scripts/gpu_bundle.sh", folder], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    for tool in ("dpkg-query", "cmake", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} was not found")
    folder = tmp_path_factory.mktemp("gpu") / "a bundle"
    done = pack(folder)
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return folder


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_it_is_small_and_holds_no_links(bundle):
    assert sum(path.stat().st_size for path in files_of(bundle)) < MOST_BYTES
    assert not any(path.is_symlink() for path in bundle.rglob("*"))


def test_a_second_pack_is_the_same(bundle, tmp_path):
    assert pack(tmp_path / "again").returncode == 0
    first, second = ((folder / "MANIFEST").read_text() for folder in (bundle, tmp_path / "again"))
    assert first == second


def test_the_manifest_names_every_package_and_file(bundle):
    lines = (bundle / "MANIFEST").read_text().splitlines()
    sums = dict(reversed(line.split("  ./", 1)) for line in lines if "  ./" in line)
    assert sums == {path.relative_to(bundle).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                    for path in files_of(bundle) if path.name != "MANIFEST"}
    packages = [line.split()[0] for line in lines if "  ./" not in line]
    assert "libfmt-dev" in packages and len(packages) >= 8
    assert {path.name for path in (bundle / "licences").iterdir()} == set(packages)


def test_every_library_that_a_packed_one_needs_is_packed_or_every_machine_has_it(bundle):
    everywhere = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)|ld-linux.*)\.so")
    libraries = list(bundle.rglob("*.so*"))
    assert libraries
    for library in libraries:
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            assert everywhere.match(needed) or (library.parent / needed).exists(), f"{library.name} needs {needed}"


def test_glibc_is_the_newest_that_a_packed_library_asks_for(bundle):
    def version(text):
        return tuple(map(int, text.split(".")))

    wanted = set()
    for library in bundle.rglob("*.so*"):
        told = subprocess.run(["readelf", "-V", library], capture_output=True, text=True, check=True).stdout
        wanted |= {version(text) for text in re.findall(r"GLIBC_(2\.\d+)", told)}
    assert version((bundle / "glibc").read_text().strip()) == max(wanted)


def test_a_build_takes_everything_from_it(bundle, tmp_path):
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={bundle}", "-DCMAKE_CUDA_COMPILER=NOTFOUND",
         "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (tmp_path / "build/CMakeCache.txt").read_text(), re.MULTILINE))
    for name in ("fmt_DIR", "CLI11_DIR", "nlohmann_json_DIR", "benchmark_DIR", "GTest_DIR", "XSIMD_INCLUDE_DIR",
                 "HWLOC_INCLUDE_DIR", "HWLOC_LIBRARY", "ZLIB_INCLUDE_DIR", "ZLIB_LIBRARY_RELEASE"):
        assert cache[name].startswith(f"{bundle}/"), f"{name} is {cache[name]}"
    assert cache["ZLIB_LIBRARY_RELEASE"].endswith("libz.a")
