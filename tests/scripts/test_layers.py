"""Includes between folders run one way: bench -> the folders of harness -> kernels."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

from tests.commands import ROOT

# The other folders that the files of each may include.
ALLOWED = {
    "kernels/common": set(),
    "kernels/<primitive>": {"kernels/common"},
    "harness/io": set(),
    "harness/ranks": {"harness/io"},
    "harness/problem": {"harness/io", "harness/ranks"},
    "harness/network": {"harness/io", "harness/problem"},
    "harness/adapters": {"harness/io", "harness/ranks", "harness/problem"},
    "harness/measure": {"harness/io", "harness/ranks", "harness/problem"},
    "harness/verify": {"harness/io", "harness/ranks", "harness/problem"},
    "harness/data": {"harness/io", "harness/problem", "harness/network"},
    "harness/results": {
        "harness/io", "harness/ranks", "harness/problem", "harness/measure", "harness/verify"},
    "harness/rungs": {
        "harness/io", "harness/ranks", "harness/problem", "harness/adapters", "harness/measure",
        "harness/verify", "harness/results"},
    "harness/execution": {
        "harness/io", "harness/ranks", "harness/problem", "harness/network", "harness/adapters",
        "harness/measure", "harness/results", "harness/rungs"},
    "harness/training": {
        "harness/io", "harness/ranks", "harness/network", "harness/data", "harness/adapters",
        "harness/results", "harness/rungs", "harness/execution"},
    "harness/planner": {
        "harness/problem", "harness/adapters", "harness/data", "harness/measure",
        "harness/execution", "harness/training"}, }
# An update over ranks is an all-reduce with the update between its two halves.
ALLOWED_PRIMITIVES = {"sgd_update": {"all_reduce"}}
HARNESS_FOLDERS = {folder for folder in ALLOWED if folder.startswith("harness/")}
for folder in HARNESS_FOLDERS:
    ALLOWED[folder] |= {"kernels/common", "kernels/<primitive>"}
ALLOWED["bench"] = HARNESS_FOLDERS | {"kernels/common", "kernels/<primitive>"}


def folder_of(path):
    """"harness/io/csv.hpp" is in "harness/io"."""
    parts = Path(path).parts
    if parts[0] == "bench":
        return "bench"
    if parts[0] == "kernels" and parts[1] != "common":
        return "kernels/<primitive>"
    return "/".join(parts[:2])


def wrong_includes(path, text):
    folder, primitive = folder_of(path), Path(path).parts[1]
    for include in re.findall(r'^\s*#\s*include\s*["<]((?:bench|harness|kernels|tests)/[^">]+)',
                              text, re.MULTILINE):
        to = folder_of(include)
        if to == folder:
            other = Path(include).parts[1]
            allowed = (to != "kernels/<primitive>" or other == primitive
                       or other in ALLOWED_PRIMITIVES.get(primitive, ()))
        else:
            allowed = to in ALLOWED[folder]
        if not allowed:
            yield f"{path} includes {include}"


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".cu"):
                yield str(path.relative_to(ROOT)), path.read_text()


def test_no_file_includes_a_folder_above_its_own():
    files = list(sources("bench", "harness", "kernels"))
    assert len(files) > 200
    assert {folder_of(path) for path, _ in files} == set(ALLOWED)
    assert [wrong for path, text in files for wrong in wrong_includes(path, text)] == []


def test_no_header_of_harness_is_implemented_in_another_folder():
    own = re.compile(r'#include "(harness/[^"]+)"')
    for path, text in sources("harness"):
        first = own.search(text)
        if path.endswith(".cpp") and first and Path(first[1]).stem == Path(path).stem:
            assert Path(first[1]).parent == Path(path).parent, path


def test_the_allowed_includes_have_no_cycle():
    TopologicalSorter(ALLOWED).prepare()


def test_a_wrong_include_is_found():
    for path, include in (("kernels/matmul/cpu/simd.cpp", "harness/io/csv.hpp"),
                          ("kernels/matmul/cpu/simd.cpp", "kernels/convolution/axis.hpp"),
                          ("kernels/common/isa.cpp", "kernels/matmul/matmul.hpp"),
                          ("harness/io/csv.cpp", "harness/problem/case.hpp"),
                          ("harness/problem/case.hpp", "harness/adapters/make_case.hpp"),
                          ("harness/results/problem_bench.cpp", "harness/execution/network.hpp"),
                          ("harness/execution/measured_step.cpp", "bench/progress.hpp"),
                          ("bench/main.cpp", "tests/verdict.hpp")):
        assert list(wrong_includes(path, f'#include "{include}"\n')) == [
            f"{path} includes {include}"]
    assert list(
        wrong_includes("bench/main.cpp",
                       '#include "harness/io/csv.hpp"\n#include <string>\n')) == []
