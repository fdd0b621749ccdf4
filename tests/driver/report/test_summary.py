"""The summary of a run as JSON: what others read stays where it is."""

from __future__ import annotations

import json

from kit.reports.summaries import a_summary, by_the_clock

from driver.report.summary import brief

COSTS = ("default_cycles", "best_cycles", "default_seconds", "best_seconds")


def test_the_document_is_flat() -> None:
    document = json.loads(json.dumps(brief(a_summary())))
    assert {
        "title", "model_digest", "target", "target_digest", "began", "seed", "proposer",
        "total_seconds", "search_seconds", "first_measured_seconds", "trials_per_second",
        "trials_this_session", "split", "workloads", "layers", "sessions", "accuracy", "plans",
        "network_cycles", "network_seconds", "network_time", "network_by_kernels", "remark",
        "arena_nbytes", "profile", "comparison", "has_accelerator", "facts", "interrupted",
        "speedup", "spaces", "code", "device", "network_rounds", *COSTS,
    } == document.keys()  # fmt: skip
    assert [document[name] for name in COSTS] == [20000, 6600, None, None]


def test_rows_have_cycles_and_seconds_by_name() -> None:
    document = brief(a_summary())
    row, layer = document["workloads"][0], document["layers"][0]
    assert {
        "name", "operator", "shape", "count", "macs", "ideal_cycles", "trials", "failures",
        "best_point", *COSTS,
    } == row.keys()  # fmt: skip
    assert (row["default_cycles"], row["best_cycles"], row["best_seconds"]) == (9000, 3000, None)
    assert layer == {
        "name": "conv_1",
        "operator": "conv2d",
        "place": "accelerator",
        "why": "the GEMM unit has it",
        "shape": "32→32 8x8",
        "macs": 589_824,
        "output_nbytes": 2048,
        "workload": "conv2d_1x2x8x8",
        "ideal_cycles": 2304,
        "default_cycles": 9000,
        "cycles": 3000,
        "default_seconds": None,
        "kernel_seconds": None,
    }
    clocked = brief(by_the_clock(a_summary()))["layers"][0]
    assert (clocked["cycles"], clocked["kernel_seconds"]) == (None, 3e-4)


def test_a_layer_of_the_processor_has_no_workload() -> None:
    layer = brief(a_summary())["layers"][1]
    assert (layer["workload"], layer["ideal_cycles"], layer["cycles"]) == ("", 0, None)
