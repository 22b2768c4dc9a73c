"""scripts/gpu_bundle.sh: the bundle is small, reproducible, licensed, and sufficient for a build.

These tests pack the packages of this machine, without the program, whose build takes minutes. The
program is checked where `make gpu-bundle` has packed it.
"""

import hashlib
import os
import re
import shutil

import pytest

from tests.commands import ROOT, check, execute

MOST_BYTES = 45 << 20
EVERYWHERE = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)|ld-linux.*|linux-vdso)\.so")


def pack(folder, **expected):
    return execute(ROOT / "scripts/gpu_bundle.sh", folder, **expected)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    for tool in ("dpkg-query", "cmake", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} was not found")
    folder = tmp_path_factory.mktemp("gpu") / "a bundle"
    done = pack(folder, status=None)
    if "is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    check(done)
    return folder


@pytest.fixture(scope="module")
def packed():
    """The bundle of `make gpu-bundle`, with the program."""
    folder = ROOT / os.environ.get("BUILD", "build") / "gpu-bundle"
    if not (folder / "bin/stepladder").exists():
        pytest.skip("make gpu-bundle has not packed the program")
    if shutil.which("readelf") is None:
        pytest.skip("readelf was not found")
    return folder


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_it_is_small_and_holds_no_links(bundle):
    assert sum(path.stat().st_size for path in files_of(bundle)) < MOST_BYTES
    assert not any(path.is_symlink() for path in bundle.rglob("*"))


def test_without_a_build_folder_it_holds_libraries_only(bundle):
    assert {path.name for path in bundle.iterdir()} == {
        "MANIFEST", "glibc", "include", "lib", "licences", "share"}


def test_a_second_pack_is_the_same(bundle, tmp_path):
    pack(tmp_path / "again")
    first, second = ((folder / "MANIFEST").read_text() for folder in (bundle, tmp_path / "again"))
    assert first == second


def manifest_of(folder):
    """The packages, and {file: sum}."""
    lines = (folder / "MANIFEST").read_text().splitlines()
    return ([line.split()[0] for line in lines if "  ./" not in line],
            dict(reversed(line.split("  ./", 1)) for line in lines if "  ./" in line))


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_manifest_names_every_package_and_file(bundle):
    packages, sums = manifest_of(bundle)
    assert sums == {path.relative_to(bundle).as_posix(): sum_of(path)
                    for path in files_of(bundle) if path.name != "MANIFEST"}
    assert "libfmt-dev" in packages and len(packages) >= 8
    assert {path.name for path in (bundle / "licences").iterdir()} == set(packages)


def readelf(option, library):
    return execute("readelf", option, library).stdout


def version(text):
    return tuple(map(int, text.split(".")))


def needed_by(file):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", file))


def glibc_of(file):
    return {version(text) for text in re.findall(r"GLIBC_(2\.\d+)", readelf("-V", file))}


def test_the_dependencies_of_packed_libraries_are_packed_or_on_every_machine(bundle):
    libraries = list(bundle.rglob("*.so*"))
    assert libraries
    for library in libraries:
        for needed in needed_by(library):
            found = EVERYWHERE.match(needed) or (library.parent / needed).exists()
            assert found, f"{library.name} needs {needed}"


def test_glibc_is_the_newest_version_that_a_packed_library_needs(bundle):
    needed = set().union(*map(glibc_of, bundle.rglob("*.so*")))
    assert version((bundle / "glibc").read_text().strip()) == max(needed)


def test_a_build_finds_everything_in_the_bundle(bundle, tmp_path):
    execute("cmake", "-S", ROOT, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={bundle}",
            "-DCMAKE_CUDA_COMPILER=NOTFOUND", "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON", timeout=300)
    text = (tmp_path / "build/CMakeCache.txt").read_text()
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))
    for name in ("fmt_DIR", "CLI11_DIR", "nlohmann_json_DIR", "benchmark_DIR", "GTest_DIR",
                 "XSIMD_INCLUDE_DIR", "HWLOC_INCLUDE_DIR", "HWLOC_LIBRARY", "ZLIB_INCLUDE_DIR",
                 "ZLIB_LIBRARY_RELEASE"):
        assert cache[name].startswith(f"{bundle}/"), f"{name} is {cache[name]}"
    assert cache["ZLIB_LIBRARY_RELEASE"].endswith("libz.a")


def test_the_program_is_stripped_and_small(packed):
    sections = readelf("-SW", packed / "bin/stepladder")
    assert ".dynsym" in sections
    assert ".symtab" not in sections and ".debug_info" not in sections
    assert sum(path.stat().st_size for path in files_of(packed)) < MOST_BYTES
    assert not any(path.is_symlink() for path in packed.rglob("*"))


def test_the_program_needs_only_packed_libraries_and_those_of_every_machine(packed):
    program = packed / "bin/stepladder"
    libraries = {path.name: path for path in packed.rglob("*.so*")}
    waiting, seen = [program], set()
    while waiting:
        file = waiting.pop()
        for needed in needed_by(file):
            if EVERYWHERE.match(needed) or needed in seen:
                continue
            assert needed in libraries, f"{file.name} needs {needed}"
            seen.add(needed)
            waiting.append(libraries[needed])
    assert seen
    glibc = version((packed / "glibc").read_text().strip())
    assert max(set().union(*map(glibc_of, [program, *libraries.values()]))) == glibc


def test_the_bundle_says_what_the_program_is(packed):
    architectures = (packed / "architectures").read_text().strip()
    assert re.fullmatch(r"[0-9]+[a-z]?(;[0-9]+[a-z]?)*", architectures)
    if (packed / "commit").exists():
        assert re.fullmatch(r"[0-9a-f]{12}( dirty)?\n", (packed / "commit").read_text())
    _, sums = manifest_of(packed)
    assert sums["bin/stepladder"] == sum_of(packed / "bin/stepladder")


def test_the_program_runs_from_another_folder_with_the_libraries_of_the_bundle(packed, tmp_path):
    copy = tmp_path / "another folder"
    for folder in ("bin", "lib"):
        shutil.copytree(packed / folder, copy / folder)
    own = {"PATH": os.environ["PATH"], "STEPLADDER_SOURCE_DIR": str(ROOT)}
    done = execute(copy / "bin/stepladder", "--version", cwd=tmp_path, env=own)
    assert re.match(r"stepladder \d", done.stdout), done.stdout
    if shutil.which("ldd") is None:
        return
    loaded = execute("ldd", copy / "bin/stepladder", env=own).stdout
    for name, path in re.findall(r"(\S+) => (.*) \(0x", loaded):
        assert EVERYWHERE.match(name) or path.startswith(str(copy)), f"{name} is {path}"


def test_the_program_lists_the_rungs_of_the_sources_it_is_given(packed, tmp_path):
    own = {"PATH": os.environ["PATH"], "STEPLADDER_SOURCE_DIR": str(ROOT)}
    shown = execute(packed / "bin/stepladder", "list", "--place", "cuda", "--full", cwd=tmp_path,
                    env=own).stdout
    assert shown.startswith("matmul\n")
    assert "not known whether it ran" not in shown  # it reads the published results
