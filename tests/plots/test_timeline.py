"""The step as a picture: what is drawn of a trace."""

import json

import pytest

from plots.data.errors import InputError
from plots.page import timeline


def trace(*configurations):
    """Of (use, mode, ranks, operations); an operation: rank, lane, name, start, end, in µs."""
    events, process = [], 0
    for use, mode, ranks, operations in configurations:
        for rank in range(ranks):
            events.append({"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {
                "name": "x", "network": "net", "use": use, "mode": mode, "place": "2 threads",
                "rank": rank, "ranks": ranks}})
            for of_rank, lane, name, start, end in operations:
                if of_rank == rank:
                    events.append({"name": name, "cat": name.split()[-1], "ph": "X", "ts": start,
                                   "dur": end - start, "pid": process, "tid": lane,
                                   "args": {"rung": "simd"}})
            process += 1
    return {"displayTimeUnit": "ms", "traceEvents": events}


ALONE = [(0, 0, "fc1 forward", 0, 40), (0, 0, "fc1 backward", 60, 100)]


def written(folder, content):
    path = folder / "trace.json"
    path.write_text(json.dumps(content))
    return path


def test_the_lanes_of_ranks_and_the_share_of_waiting(tmp_path):
    both = [(0, 0, "fc1 forward", 0, 100), (1, 0, "fc1 forward", 0, 20),
            (1, 0, "fc1 all_reduce", 20, 60)]
    [alone, ranks] = timeline.steps(written(tmp_path, trace(
        ("best", "single", 1, ALONE), ("best", "synchronous", 2, both))))
    assert alone.idle == pytest.approx(0.2) and alone.label == "best, 2 threads"
    assert ranks.idle == pytest.approx(0.2) and ranks.label == "best, 2 ranks, 2 threads"
    assert sorted(ranks.lanes) == [(0, 0), (1, 0)]


def test_the_fastest_of_each_kind_is_drawn(tmp_path):
    slow = [(0, 0, "fc1 forward", 0, 300)]
    found = timeline.steps(written(tmp_path, trace(
        ("serial", "single", 1, slow), ("best", "single", 1, slow), ("best", "single", 1, ALONE),
        ("vendor", "single", 1, slow), ("best", "ablate", 1, ALONE),
        ("openmp", "inter=2", 1, slow))))
    assert [step.label for step in timeline.chosen(found)] == [
        "best, 2 threads", "vendor, 2 threads", "openmp, 2 threads, inter=2"]


def test_bars_lie_at_their_times(tmp_path):
    [step] = timeline.steps(written(tmp_path, trace(("best", "single", 1, ALONE))))
    drawn = timeline.picture([step])
    assert '<rect class="bar" x="0.00%" y="26" width="39.96%" height="20"/>' in drawn
    assert '<rect class="bar" x="59.94%"' in drawn and "fc1 backward: 0.040 ms, simd" in drawn
    assert "20 % waiting" in drawn


def test_no_trace_is_no_picture_and_another_file_is_an_error(tmp_path):
    assert timeline.steps(tmp_path / "trace.json") == []
    with pytest.raises(InputError, match="trace.json: expected the trace of"):
        timeline.steps(written(tmp_path, {"traceEvents": [{"ph": "X"}]}))


def test_what_replaces_a_rung_is_left_out_on_narrow_screens():
    step = timeline.Step("mlp", "best,all_reduce=mpi_allreduce", "single", "2 threads", 2)
    step.lanes[0, 0] = [timeline.Operation("fc forward", "forward", "packed", 0.0, 5.0)]
    assert ('best<tspan class="more">,all_reduce=mpi_allreduce</tspan>, 2 ranks, 2 threads'
            in timeline.picture([step]))
