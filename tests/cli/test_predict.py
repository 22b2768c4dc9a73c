"""The cost model of best: scripts/cost_model.py fits it to runs, predict prints what it expects,
step uses it."""

import json
import math
import random
import sys

import pytest

from scripts import cost_model
from tests import columns
from tests.commands import ROOT, changing, execute, read_csv, write_csv

FORMS = {"forward": "nn", "backward_data": "nt", "backward_weights": "tn"}
COLUMNS = ("primitive", "direction", "variant", "technique", "problem", "shape", "precision",
           "layout", "prepacked", "threads", "ranks", "status", "median_s", "flops", "bytes")


@pytest.fixture(scope="module")
def machine(stepladder):
    return json.loads(stepladder("machine", "--json").stdout)


@pytest.fixture
def isa(machine):
    return machine["isa"][-1]


def true_seconds(family, m, n, k):
    """skinny is faster where m is below 32, by a law that is linear in the logarithms of the
    sizes."""
    return 1e-9 * m * n * k if family == "openmp" else 1e-9 * 2 ** -2.5 * m ** 1.5 * n * k


def product(m, n, k, form="nn"):
    return {"primitive": "matmul", "shape": f"{m}x{n}x{k} {form}", "flops": 2.0 * m * n * k,
            "bytes": 4.0 * (m * n + m * k + k * n)}


def write_run(folder, machine, isa, sizes, cpu_model=None, direction="forward"):
    folder.mkdir()
    (folder / "environment.json").write_text(json.dumps({
        "schema_version": 1, "cpu_model": cpu_model or machine["cpu_model"], "commit": "abc"}))
    described = json.loads(columns.JSON)["tables"]["summary"]
    (folder / "columns.json").write_text(json.dumps({"schema_version": 1, "tables": {
        "summary": [column for column in described if column["name"] in COLUMNS]}}))
    write_csv(folder / "summary.csv", [
        product(m, n, k, FORMS[direction]) | {
            "direction": direction, "variant": f"{family}_{isa}", "technique": "openmp",
            "problem": f"{m}x{n}x{k}", "precision": "fp32", "layout": "row_major",
            "prepacked": "no", "threads": 1, "ranks": 1, "status": "ok",
            "median_s": true_seconds(family, m, n, k)}
        for m, n, k in sizes for family in ("openmp", "skinny")], COLUMNS)
    return folder


def sizes(count, seed):
    draw = random.Random(seed)
    return [tuple(int(2 ** draw.uniform(1, 9)) for _ in range(3)) for _ in range(count)]


def script(*arguments, **expected):
    return execute(sys.executable, ROOT / "scripts/cost_model.py", *arguments, **expected)


@pytest.fixture
def model(machine, isa, tmp_path):
    run = write_run(tmp_path / "fitted", machine, isa, sizes(60, 1))
    script("fit", run, "--out", tmp_path / "model.json")
    return tmp_path / "model.json"


def test_a_law_is_learnt_and_the_regret_on_other_shapes_is_printed(machine, isa, model, tmp_path):
    other = write_run(tmp_path / "other", machine, isa,
                      [size for size in sizes(60, 2) if not 28 < size[0] < 36])
    found = cost_model.regrets(json.loads(model.read_text()), [other])["matmul, 1 thread"]
    assert len(found) > 40 and max(regret.predicted for regret in found) == 0
    shown = script("check", model, other)
    assert "| matmul, 1 thread |" in shown.stdout
    assert "| 100% | 0.0% | 0.0% |" in shown.stdout


def test_the_regret_of_a_wrong_model_is_not_zero(machine, isa, model, tmp_path):
    content = json.loads(model.read_text())
    rungs = content["families"][0]["rungs"]
    first, second = sorted(rungs)
    rungs[first], rungs[second] = rungs[second], rungs[first]
    other = write_run(tmp_path / "other", machine, isa, [(512, 64, 64), (8, 64, 64)])
    regrets = sorted(
        cost_model.regrets(content, [other])["matmul, 1 thread"],
        key=lambda regret: regret.predicted)
    assert [regret.predicted for regret in regrets] == pytest.approx([
        1, 3])  # 8 rows: sqrt(32 / 8); 512: sqrt(512 / 32)
    assert [regret.measured for regret in regrets] == pytest.approx([1, 3]) and [
        regret.rungs for regret in regrets] == [1, 1]


def test_the_fastest_of_close_predictions_has_no_regret(machine, isa, model, tmp_path):
    content = json.loads(model.read_text())  # openmp and skinny are equal at 32 rows
    content["families"][0]["rungs"][f"skinny_{isa}"]["bias"] -= 0.05
    other = write_run(tmp_path / "other", machine, isa, [(34, 64, 64), (128, 64, 64)])
    near, far = cost_model.regrets(content, [other])["matmul, 1 thread"]
    assert (near.chosen, near.fastest, near.rungs, near.measured) == (f"skinny_{isa}",
                                                                      f"openmp_{isa}", 2, 0)
    assert near.predicted == pytest.approx((34 / 32)**0.5 -
                                           1) and (far.chosen, far.rungs) == (f"openmp_{isa}", 1)


# The shape in a row, the shape of --shape, FLOPs, bytes.
MATMUL = "3x37x5", "3x37x5", 2.0 * 3 * 37 * 5, 4.0 * (3 * 37 + 3 * 5 + 37 * 5)
CONVOLUTION = ("n2 c3 h20 w31 k5 r3 s4 stride2x1 pad1x0 g1",
               "2x3x20x31x5x3x4 stride_h=2 stride_w=1 pad_h=1 pad_w=0",
               2.0 * 2 * 5 * 3 * (10 * 3 - 1) * 28 * 4,
               4.0 * (2 * 3 * 20 * 31 + 5 * 3 * 3 * 4 + 2 * 5 * 10 * 28))


@pytest.mark.parametrize(("primitive", "direction", "problem", "form"), [
    ("matmul", "forward", MATMUL, (" nn", "")),
    ("matmul", "backward_data", MATMUL, (" nt", " transpose_b=1")),
    ("matmul", "backward_weights", MATMUL, (" tn", " transpose_a=1")),
    *(("convolution", direction, CONVOLUTION, ("", ""))
      for direction in ("forward", "backward_data", "backward_weights"))])
def test_the_sizes_of_a_problem_are_those_of_the_fit(stepladder, isa, machine, tmp_path, primitive,
                                                     direction, problem, form):
    shape, option, flops, bytes_moved = problem
    features = cost_model.features_of({
        "primitive": primitive, "direction": direction, "shape": shape + form[0], "flops": flops,
        "bytes": bytes_moved})
    # The bias is chosen so that the prediction is 1 us if the program computes the same sizes.
    slopes = [0.1 * (d + 1) for d in range(len(features))]
    # They are measured sizes, and the kernel is 0 there.
    far = [-1e9] * len(features), [1e9] * len(features)
    bias = math.log2(1e-6) - sum(s * x for s, x in zip(slopes, features, strict=True))
    path = tmp_path / "model.json"
    path.write_text(json.dumps({
        "schema_version": 1, "cpu_model": machine["cpu_model"], "families": [{
            "primitive": primitive, "directions": [direction],
            "layout": "row_major" if primitive == "matmul" else "nchw", "threads": 1,
            "lengths": [1.0] * len(features), "points": far, "rungs": {
                f"openmp_{isa}": {"bias": bias, "slopes": slopes, "weights": [1.0, 1.0]}}}]}))
    done = stepladder("predict", primitive, "--shape", option + form[1],
                      *(["--direction", direction] if primitive == "convolution" else []),
                      "--threads", "1", "--cost-model", path)
    assert done.stdout.splitlines()[-1].split()[-1] == "1.0"


def test_the_directions_of_a_product_are_one_fit(monkeypatch):
    monkeypatch.setattr(cost_model, "MOST_POINTS", 50)

    def measured(form):
        return [cost_model.Measured(f"{m}x{n}x{k}",
                                    cost_model.features_of(product(m, n, k, form)),
                                    {"a": 1e-9 * m * n * k, "b": 2e-9 * n * k})
                for m, n, k in sizes(20, 4)]

    families = {("matmul", direction, "row_major", threads): measured(form)
                for direction, form in FORMS.items() for threads in (1, 2)}
    fitted = cost_model.fit_families(families)
    assert [(set(family["directions"]), family["threads"]) for family in fitted] == [
        (set(FORMS), 1), (set(FORMS), 2)]
    points = fitted[0]["points"]
    assert len(points) == 50  # of 60, evenly from each
    assert all(15 <= sum(point[10:12] == bits for point in points) <= 18
               for bits in ([0, 0], [0, 2], [2, 0]))


def test_forward_and_backward_data_of_a_convolution_are_one_fit(capsys):
    draw = random.Random(3)

    def measured(direction, count):
        found = []
        for _ in range(count):
            source, target = (int(2 ** draw.uniform(0, 8)) for _ in range(2))
            channels, filters = (source, target) if direction == "forward" else (target, source)
            row = {
                "primitive": "convolution", "direction": direction,
                "flops": 2.0 * channels * filters * 9 * 64,
                "bytes": 4.0 * 64 * (channels + filters),
                "shape": f"n1 c{channels} h8 w8 k{filters} r3 s3 stride1x1 pad1x1 g1"}
            # lanes are source channels or target channels
            found.append(
                cost_model.Measured(
                    f"{source} to {target}", cost_model.features_of(row),
                    {"a": 1e-6 * source * target**0.5, "b": 1e-6 * source**0.5 * target}))
        return found

    families = {("convolution", "forward", "nchw", 1): measured("forward", 60),
                ("convolution", "backward_data", "nchw", 1): measured("backward_data", 3)}
    (fitted,) = cost_model.fit_families(families)
    assert set(fitted["directions"]) == {"forward", "backward_data"}
    shown = capsys.readouterr().out
    assert "convolution backward_data and forward, 1 thread: 63 problems, 2 rungs" in shown
    for problem in measured("backward_data", 20):
        predictions = {name: cost_model.predicted(fitted, name, problem.features) for name in "ab"}
        assert problem.seconds[min(predictions,
                                   key=predictions.get)] <= 1.05 * min(problem.seconds.values())


@pytest.mark.parametrize("size", [(4, 100, 300), (300, 40, 17)])
def test_predict_computes_what_the_fit_computes(stepladder, isa, model, size):
    m, n, k = size
    done = stepladder("predict", "matmul", "--shape", f"{m}x{n}x{k}", "--threads", "1",
                      "--cost-model", model)
    (line,) = done.stdout.splitlines()[1:]
    family = json.loads(model.read_text())["families"][0]
    expected = "skinny" if m < 32 else "openmp"
    seconds = cost_model.predicted(family, f"{expected}_{isa}",
                                   cost_model.features_of(product(*size)))
    assert math.isclose(seconds, true_seconds(expected, m, n, k), rel_tol=0.05)
    assert f"{expected}_{isa}" in line.split() and f"{1e6 * seconds:.1f}" in line.split()


CLOSE, FAR = (math.log2(cost_model.UNCERTAIN_FACTOR * factor) for factor in (0.99, 1.01))
MEASURED = pytest.mark.without_sanitizers("which rung is faster depends on them")


@pytest.mark.parametrize(("slow", "packed", "expected"), [
    (-20, -20 + FAR, "slow"),
    (-20 + FAR, -20, "packed"),
    pytest.param(-20, -20 + CLOSE, "packed", marks=MEASURED),
    pytest.param(-20 + CLOSE, -20, "packed", marks=MEASURED)])
def test_a_step_measures_only_rungs_that_the_model_predicts_to_be_close(
        stepladder, isa, machine, tmp_path, slow, packed, expected):
    variants = {"slow": f"simd_{isa}",
                "packed": f"packed_{isa}"}  # of this product, packed takes less than half the time
    network = tmp_path / "wide.json"
    network.write_text(json.dumps({
        "input": {"channels": 1, "height": 28, "width": 28}, "classes": 512, "batch": 256,
        "layers": [{"type": "fully_connected", "name": "fc", "outputs": 512},
                   {"type": "softmax_cross_entropy"}],
        "optimizer": {"type": "sgd", "learning_rate": 0.1}}))
    run = write_run(tmp_path / "fitted", machine, isa, [(512, 256, 784), *sizes(40, 1)],
                    direction="backward_weights")
    path = tmp_path / "model.json"
    script("fit", run, "--out", path)
    with changing(path) as content:
        family = content["families"][0]
        rung = next(iter(family["rungs"].values()))
        family["rungs"] = {
            variants[name]: rung | {
                "bias": bias, "slopes": [0] * len(rung["slopes"]),
                "weights": [1e-9] * len(rung["weights"])}
            for name, bias in (("slow", slow), ("packed", packed))}

    def chosen(name):
        out = tmp_path / name
        stepladder("step", "--network", network, "--repetitions", "3", "--budget", "0.005",
                   "--threads", "1", "--cost-model", path, "--out", out)
        return next(row["variant"] for row in read_csv(out / "step.csv")
                    if row["layer"] == "fc.backward_weights")

    # Where both are measured, other work may make the faster one look slower, but not each time.
    runs = 5 if abs(slow - packed) < (CLOSE + FAR) / 2 else 1
    assert any(chosen(f"run{run}") == variants[expected] for run in range(runs))


@pytest.mark.parametrize(("change", "expected"), [
    (lambda model: model.update(cpu_model="Analytical Engine"),
     "measured on \"Analytical Engine\", and this is"),
    (lambda model: model["families"][0]["lengths"].__setitem__(0, 0),
     "expected a positive number, found 0"),
    (lambda model: model["families"][0]["points"][3].pop(), "expected 14 numbers"),
    (lambda model: next(iter(model["families"][0]["rungs"].values()))["weights"].append(1.5),
     "expected 60 numbers"),
    (lambda model: model["families"][0].pop("points"), "points"),
    (lambda model: model["families"][0].pop("directions"), "directions"),
    (lambda model: model.update(extra=1), "extra"),
])
def test_a_malformed_file_is_refused(stepladder, model, change, expected):
    with changing(model) as content:
        change(content)
    stepladder("predict", "matmul", "--shape", "8x8x8", "--threads", "1", "--cost-model", model,
               status="not 0", error=(expected, str(model)))


def test_a_rung_is_not_predicted_far_from_the_sizes_that_it_was_measured_with(
        stepladder, isa, model):
    with changing(model) as content:  # sizes of 2 to 512
        family, rung = content["families"][0], content["families"][0]["rungs"][f"openmp_{isa}"]
        family["rungs"][f"packed_openmp_{isa}"] = rung | {
            "bias": -100, "weights": [
                weight if point[2] < 4 else 0.0  # k below 16
                for weight, point in zip(rung["weights"], family["points"], strict=True)]}

    def predict(k, **expected):
        return stepladder("predict", "matmul", "--shape", f"64x64x{k}", "--threads", "1",
                          "--cost-model", model, **expected)

    for k, fastest in ((8, f"packed_openmp_{isa}"), (200, f"openmp_{isa}")):
        assert predict(k).stdout.splitlines()[1].split()[4] == fastest
    predict(2000, status="not 0", error="sizes")
    features = cost_model.features_of(product(64, 64, 200))
    assert [
        cost_model.covers(family, f"{name}_{isa}", features)
        for name in ("openmp", "packed_openmp")] == [True, False]


def test_nothing_to_predict_is_an_error(stepladder, model):
    stepladder("predict", "max_pool", "--suite", "quick", "--threads", "1", "--cost-model", model,
               status="not 0", error=str(model), lines=1)


def test_the_check_refuses_a_model_of_an_earlier_version(machine, isa, model, tmp_path):
    with changing(model) as content:
        content["families"][0]["direction"] = content["families"][0].pop("directions")[0]
    script("check", model, write_run(tmp_path / "other", machine, isa, sizes(5, 2)), status=2,
           error=f"{model}: of an earlier version", lines=1)


def test_bad_runs_are_refused_and_leave_no_file(machine, isa, tmp_path):
    run = write_run(tmp_path / "one", machine, isa, sizes(5, 1))
    other = write_run(tmp_path / "two", machine, isa, sizes(40, 1), cpu_model="Analytical Engine")
    out = tmp_path / "model.json"
    for runs, expected in (([run], "two rungs that were measured on 12"),
                           ([run, other], "several processors"),
                           ([tmp_path / "none"], "no such folder")):
        script("fit", *runs, "--out", out, status=2, error=expected, lines=1)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == []
