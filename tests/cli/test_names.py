"""Unknown names print the nearest ones and exit 2, before anything is measured or written."""

import json
import re

import pytest

UNKNOWN = [
    (("lst", ), "unknown subcommand 'lst'", "list"),
    (("list", "matmull"), "unknown primitive 'matmull'", "matmul"),
    (("list", "matmul", "max_pol"), "unknown primitive 'max_pol'", "max_pool"),
    (("bench", "convolutoin"), "unknown primitive 'convolutoin'", "convolution"),
    (("bench", "matmul", "--variant", "serial_ijj"), "unknown variant of matmul 'serial_ijj'",
     "serial_ijk"),
    (("bench", "--variant", "brancless"), "unknown variant 'brancless'", "branchless"),
    (("bench", "matmul", "--suite", "layer"), "unknown suite 'layer'", "layers"),
    (("bench", "--suite", "sqares"), "unknown suite 'sqares'", "squares"),
    (("bench", "matmul", "max_pool", "--suite", "layers,thn"), "unknown suite 'thn'", "thin"),
    (("bench", "matmul", "--problem", "mlp.fc1"), "unknown problem of matmul 'mlp.fc1'",
     "mlp.fc1.backward_weights"),
    (("bench", "matmul", "--direction", "foward"), "unknown direction of matmul 'foward'",
     "forward"),
    (("verify", "matmul", "--place", "cuda", "--variant", "openblas"),
     "unknown cuda variant of matmul 'openblas'", "cublas"),
    (("bench", "--place", "cuda", "--variant", "serial_ijk"), "unknown cuda variant 'serial_ijk'",
     ""),
    (("verify", "matmul", "--place", "cpu", "--variant", "warp_tile"),
     "unknown cpu variant of matmul 'warp_tile'", ""),
    (("bench", "matmul", "convolution", "--variant", "openb*,opnmp"), "unknown variant 'opnmp'",
     "openmp"),
    (("bench", "matmul", "max_pool", "--problem", "nothing.*"), "unknown problem 'nothing.*'", ""),
    (("bench", "matmul", "max_pool", "--direction", "forward,upward"), "unknown direction 'upward'",
     "forward"),
    (("bench", "matmul", "max_pool", "--suite", "layer"), "unknown suite 'layer'", "layers"),
    (("verify", "sgd_update", "all_reduce", "--place", "cuda", "--variant", "serial"),
     "unknown cuda variant 'serial'", ""),
    (("verify", "sgd_updat"), "unknown primitive 'sgd_updat'", "sgd_update"),
    (("verify", "max_pool", "--variant", "serail"), "unknown variant of max_pool 'serail'",
     "serial"),
    (("step", "--network", "mnist_cn"), "unknown network 'mnist_cn'", "mnist_cnn"),
    (("step", "--network", "mlp", "--use", "bset"), "unknown rung 'bset'", "best"),
    (("step", "--network", "mlp", "--use", "best,convoluton=direct"),
     "unknown primitive 'convoluton'", "convolution"),
    (("train", "--network", "mlpp"), "unknown network 'mlpp'", "mlp"),
    (("train", "--network", "mlp", "--use", "opnmp"), "unknown rung 'opnmp'", "openmp"), ]

WRITES = ("bench", "step", "train")


@pytest.mark.parametrize("arguments, message, nearest", UNKNOWN,
                         ids=lambda part: " ".join(part) if isinstance(part, tuple) else "")
def test_unknown_names_answer_with_the_nearest(stepladder, tmp_path, arguments, message, nearest):
    out = ("--out", tmp_path / "run") if arguments[0] in WRITES else ()
    done = stepladder(*arguments, *out, status=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"stepladder: {message}; nearest: {nearest}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments, message", [
    ((), "subcommand is required"),
    (("bench", "--threads", "0"),
     "--threads: expected whole numbers from 1 to 1024, such as 1,2, not '0'"),
    (("bench", "--threads", "two"), "--threads: expected whole numbers"),
    (("bench", "--threads", "1,,2"), "--threads: expected whole numbers"),
    (("bench", "--threads", "[1,2]"), "--threads: expected whole numbers"),
    (("bench", "--seed", " 1"), "--seed: expected a whole number"),
    (("bench", "--seed", ""), "--seed: expected a whole number"),
    (("bench", "--budget", "1e999"), "--budget: expected a number"),
    (("bench", "--repetitions", "1"),
     "--repetitions: expected a whole number from 2 to 1000, not '1'"),
    (("bench", "--budget", "-1"), "--budget: expected a number above 0, at most 1e+09, not '-1'"),
    (("bench", "--budget", "inf"), "--budget: expected a number above 0, at most 1e+09, not 'inf'"),
    (("bench", "--seed", "-1"),
     "--seed: expected a whole number from 0 to 18446744073709551615, not '-1'"),
    (("bench", "--seed", "18446744073709551616"),
     "--seed: expected a whole number from 0 to 18446744073709551615"),
    (("verify", "--random", "many"),
     "--random: expected a whole number from 0 to 100000000, not 'many'"),
    (("train", "--network", "mlp", "--epochs", "9223372036854775807"),
     "--epochs: expected a whole number from 1 to 1000000000, not '9223372036854775807'"),
    (("train", "--network", "mlp", "--target-accuracy", "nan"),
     "--target-accuracy: expected a number from 0 to 1"),
    (("compare", "a", "b", "--threshold", "0"),
     "--threshold: expected a number above 0, at most 1e+09, not '0'"),
    (("train", "--network", "mlp", "--learning-rate", "1e-60"),
     "--learning-rate: expected a number above 0 in single precision"),
    (("train", "--network", "mlp", "--learning-rate", "1e39"),
     "--learning-rate: expected a number above 0 in single precision"),
    (("bench", "--nonsense"), "--nonsense"),
    (("bench", "--place", "gpu"), "--place: gpu not in {cpu,cuda,opencl}"),
    (("bench", "--again"), "--again requires --resume"),
    (("bench", "--suite", "layers", "--suite-file", "x.csv"), "excludes"),
    (("bench", "--suite-file", "x.csv"), "holds problems of one primitive"),
    (("bench", "matmul", "--suite", "layers", "--shape", "4x4x4"), "excludes"),
    (("bench", "--suite", "layers,,thin"),
     "--suite: expected names such as layers,thin, not 'layers,,thin'"),
    (("bench", "--shape", "4x4x4"), "holds problems of one primitive"),
    (("step",), "--network is required"),
    (("compare", "only_one"), "new is required"),
])
def test_wrong_usage_exits_2_and_points_to_the_help(stepladder, arguments, message):
    stepladder(*arguments, status=2, error=(message, "--help"))


COMMANDS = [
    "list", "machine", "verify", "bench", "step", "train", "plan", "tune", "predict", "compare"]
NO_NUMBERS = ["0x10", "1_0"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_takes_numbers_reads_them_in_one_way(stepladder, command):
    """The types in the help tell which options take numbers."""
    options = re.findall(r"^  (--[\w-]+) (INT|UINT|FLOAT)\b",
                         stepladder(command, "--help").stdout, re.M)
    for option, kind in options:
        for text in NO_NUMBERS + (["nan", "1e999"] if kind == "FLOAT" else [
                "1.5", "99999999999999999999"]):
            stepladder(command, option, text, status=2,
                       error=(f"{option}: expected ", f", not '{text}'"))
    assert options or command in ("list", "machine")


@pytest.mark.parametrize("text, number", [
    ("010", 10), ("08", 8), ("18446744073709551615", 2**64 - 1)])
def test_numbers_are_decimal(stepladder, tiny, tmp_path, text, number):
    run = tmp_path / "run"
    stepladder("bench", "matmul", "--variant", "serial_ijk", "--suite-file", tiny, "--threads",
               "01", "--budget", "0.02", "--repetitions", "02", "--seed", text, "--out", run,
               "--resume")
    assert json.loads((run / "environment.json").read_text())["seed"] == number


@pytest.mark.parametrize("command", COMMANDS)
def test_every_subcommand_has_help(stepladder, command):
    done = stepladder(command, "--help", lines=0)
    assert command in stepladder("--help").stdout
    assert f"stepladder {command}" in done.stdout and "--help" in done.stdout


def test_version(stepladder):
    done = stepladder("--version")
    assert done.stdout.startswith("stepladder ")


def primitives_of(verified):
    return [line.split()[0] for line in verified.stdout.splitlines()]


def test_a_pattern_needs_to_match_in_one_of_the_primitives_that_are_named(stepladder):
    done = stepladder("verify", "matmul", "max_pool", "--variant", "branch*", "--random", "3")
    assert primitives_of(done) == ["max_pool"]
    assert done.stderr.splitlines()[0] == "left out: matmul has no variant 'branch*'"


def test_each_of_several_patterns_needs_to_match_in_one_of_them(stepladder):
    done = stepladder("verify", "matmul", "max_pool", "--variant", "branchless,blocked", "--random",
                      "3")
    assert primitives_of(done) == ["matmul", "max_pool"]
    assert "left out" not in done.stderr


@pytest.mark.parametrize("arguments, expected", [
    (("matmul", "max_pool", "--problem", "*.pool1*,*.pool2*", "--variant", "serial"), ["max_pool"]),
    (("matmul", "max_pool", "sgd_update", "--direction", "forward,adam", "--variant", "serial*",
      "--problem", "mlp*"), ["matmul", "sgd_update"]),
    (("sgd_update", "layers", "max_pool", "--place", "cuda", "--random", "1"),
     ["sgd_update", "layers", "max_pool"]),
])
def test_primitives_without_a_match_are_left_out(stepladder, arguments, expected):
    verified = stepladder("verify", *arguments, status=(0, 4))  # 4: nothing that can run here
    assert primitives_of(verified) == expected


def test_patterns_that_match_nowhere_together_are_an_error(stepladder):
    done = stepladder("verify", "matmul", "max_pool", "--variant", "blocked", "--problem",
                      "*.pool1*", status=2, error="unknown problem '*.pool1*'")
    assert done.stdout == ""


def test_where_no_primitive_is_named_those_without_the_variant_are_left_out(stepladder):
    done = stepladder("verify", "--variant", "branchless", "--random", "3")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["max_pool"]


def rungs(listing):
    """Primitive: the first words of the lines of its rungs."""
    found = {}
    for line in listing.splitlines():
        if not line.startswith(" "):
            rungs_of = found.setdefault(line, [])
        elif line[2] != " ":
            rungs_of.append(line.split()[0])
    return found


def test_place_selects_the_rungs_that_run_there(stepladder):
    everywhere = rungs(stepladder("list", "--full").stdout)
    cpu, cuda, opencl = (rungs(stepladder("list", "--full", "--place", place).stdout)
                         for place in ("cpu", "cuda", "opencl"))
    assert everywhere == {
        name: [rung for place in (cpu, cuda, opencl) for rung in place.get(name, [])]
        for name in everywhere}
    assert "warp_tile" in cuda["matmul"] and "warp_tile" not in cpu[
        "matmul"] and "serial_ijk" in cpu["matmul"]
    done = stepladder("verify", "matmul", "--place", "cuda", "--random", "1", status=None)
    assert f" problems, {len(cuda['matmul'])} variants" in done.stdout


def test_random_problems_that_no_variant_supports_do_not_count(stepladder):
    done = stepladder("verify", "convolution", "--variant", "direct", "--random",
                      "40")  # takes NCHW only
    problems, passed, unavailable = map(
        int,
        re.search(r"(\d+) problems, 1 variant: (\d+) checks passed, 0 failed, (\d+) unavailable",
                  done.stdout).groups())
    assert problems - unavailable == 40 and unavailable > 0 and passed >= 40


def test_list_leaves_out_primitives_without_rungs_at_the_place_unless_all_are(stepladder):
    names = rungs(stepladder("list", "--full").stdout)
    with_cuda = rungs(stepladder("list", "--full", "--place", "cuda").stdout)
    for name in names:
        done = stepladder("list", name, "--place", "cuda", status=0 if name in with_cuda else 2)
        assert name in with_cuda or f"unknown place of {name} 'cuda'; nearest: cpu" in done.stderr
    done = stepladder("list", "--full", *names, "--place", "cuda")
    assert rungs(done.stdout) == with_cuda


def test_the_list_is_a_tree_with_a_line_for_each_file(stepladder):
    lines = stepladder("list", "max_pool").stdout.splitlines()
    assert lines[0] == "max_pool" and lines[1].startswith(" ├─ serial: the definition")
    at = {re.search(r"─ (\w+)", line)[1]: line for line in lines[1:]}
    assert len(at) == len(lines) - 1
    assert re.search(r"─ simd \[sse42 avx2 avx512\]: vectors", at["simd"])
    # a rung is further to the right than the one it builds on
    for below, above in (("serial", "branchless"), ("branchless", "simd"), ("simd", "openmp")):
        assert at[below].index("─ ") < at[above].index("─ ")
    assert at["nchw16c"].endswith("; supports NCHW16c only")


def test_the_list_gives_the_reason_of_a_branch_once(stepladder):
    text = stepladder("list", "matmul", "--place", "cuda").stdout
    if "unavailable" not in text:
        pytest.skip("this machine has a device")
    first, second = [line for line in text.splitlines()
                     if "─ naive" in line or "─ coalesced" in line]
    assert "(unavailable: " in first and second.endswith(" (unavailable)")
