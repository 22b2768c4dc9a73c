"""scripts/gpu_bundle.sh: the bundle is small, reproducible, licensed, and sufficient for a build.

These tests pack the packages of this machine.
"""

import hashlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

MOST_BYTES = 40 << 20


def pack(folder):
    return subprocess.run([ROOT / "scripts/gpu_bundle.sh", folder], capture_output=True, text=True,
                          timeout=120, check=False)


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
    assert sums == {
        path.relative_to(bundle).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files_of(bundle) if path.name != "MANIFEST"}
    packages = [line.split()[0] for line in lines if "  ./" not in line]
    assert "libfmt-dev" in packages and len(packages) >= 8
    assert {path.name for path in (bundle / "licences").iterdir()} == set(packages)


def readelf(option, library):
    return subprocess.run(["readelf", option, library], capture_output=True, text=True,
                          check=True).stdout


def test_the_dependencies_of_packed_libraries_are_packed_or_on_every_machine(bundle):
    everywhere = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)|ld-linux.*)\.so")
    libraries = list(bundle.rglob("*.so*"))
    assert libraries
    for library in libraries:
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library)):
            found = everywhere.match(needed) or (library.parent / needed).exists()
            assert found, f"{library.name} needs {needed}"


def test_glibc_is_the_newest_version_that_a_packed_library_needs(bundle):
    def version(text):
        return tuple(map(int, text.split(".")))

    needed = {version(text) for library in bundle.rglob("*.so*")
              for text in re.findall(r"GLIBC_(2\.\d+)", readelf("-V", library))}
    assert version((bundle / "glibc").read_text().strip()) == max(needed)


def test_a_build_finds_everything_in_the_bundle(bundle, tmp_path):
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={bundle}",
         "-DCMAKE_CUDA_COMPILER=NOTFOUND", "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON"],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "build/CMakeCache.txt").read_text()
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))
    for name in ("fmt_DIR", "CLI11_DIR", "nlohmann_json_DIR", "benchmark_DIR", "GTest_DIR",
                 "XSIMD_INCLUDE_DIR", "HWLOC_INCLUDE_DIR", "HWLOC_LIBRARY", "ZLIB_INCLUDE_DIR",
                 "ZLIB_LIBRARY_RELEASE"):
        assert cache[name].startswith(f"{bundle}/"), f"{name} is {cache[name]}"
    assert cache["ZLIB_LIBRARY_RELEASE"].endswith("libz.a")
