"""Lines of AutoTVM's log: read, refused by name, and written."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import pytest
from kit.shared import shared_folder
from tilefarm.space import violations
from tilefarm.target import TARGETS

from compile_worker.space import generate
from driver.benchmarks.tvm_flow import OLD_FLOW
from driver.program.vta.layers import RESNET18
from driver.tune.autotvm.log import is_log_line, read_line, records_of_log
from driver.tune.autotvm.log_writing import index_of, to_log_line
from driver.tune.autotvm.template import TemplateChoice, TemplateLayer

PYNQ = TARGETS["pynq-z1"]
TILES = ("tile_h", "tile_w", "tile_ci", "tile_co")


def document(choice: tuple[int, ...] = (8, 56, 1, 2, 2, 1), seconds: float = 0.0057) -> Any:
    """A line for C2 of ResNet-18, as TopHub's log has them."""
    splits = [[name, "sp", [-1, tile]] for name, tile in zip(TILES, choice, strict=False)]
    return {
        "input": [
            "ext_dev -keys=vta,cpu -device=vta -model=pynq_1x16_i8w8a32_15_15_18_17",
            "conv2d_packed.vta",
            [
                ["TENSOR", [1, 4, 56, 56, 1, 16], "int8"],
                ["TENSOR", [4, 4, 3, 3, 16, 16], "int8"],
                [1, 1],
                [1, 1, 1, 1],
                [1, 1],
                "NCHW1n16c",
                "int32",
            ],
            {},
        ],
        "config": {
            "index": 828,
            "code_hash": None,
            "entity": [
                ["tile_b", "sp", [-1, 1]],
                *splits,
                ["oc_nthread", "ot", choice[4]],
                ["h_nthread", "ot", choice[5]],
            ],
        },
        "result": [[seconds], 0, 8.5, 1553127163.5],
        "version": 0.2,
        "tvm_version": "0.7.dev1",
    }


def changed(path: list[Any], value: object) -> str:
    line = document()
    place = line
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(line)


def test_a_line_becomes_a_record_with_its_choices() -> None:
    (record,), refused = records_of_log([(22, json.dumps(document()))], PYNQ)
    assert not refused
    assert record.workload == RESNET18["C2"].workload(PYNQ)
    assert (record.cost, record.device, record.cycles) == (0.0057, "pynq", None)
    made = generate(record.workload, PYNQ)
    point = made.completed(dict(record.point))
    assert violations(made.space, point) == []
    assert made.trace(point).digest == record.trace
    assert (point["tile_oh"], point["tile_ow"], point["tile_ci"]) == (8, 56, 1)
    assert (point["tile_co"], point["slots"]) == (2, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (changed(["version"], 0.1), "version 0.1, not 0.2"),
        ('{"i": [], "r": [], "v": 0.1}', "version 0.1"),
        (changed(["input", 0], "llvm -device=arm_cpu"), "measured on llvm -device=arm_cpu"),
        (
            changed(["input", 0], "ext_dev -model=pynq_4x8_i8w8a32_15_15_18_17"),
            "measured on 4x8_i8w8a32_15_15_18_17",
        ),
        (changed(["input", 1], "dense_packed.vta"), "only conv2d_packed.vta"),
        (changed(["input", 2], []), "not a whole line"),
        (changed(["input", 2, 2], [1, 2]), "not square"),
        (changed(["input", 2, 4], [2, 2]), "dilated"),
        (changed(["input", 2, 0, 1], [1, 4, 56, 56, 1, 8]), "its blocks are not 1x16"),
        (changed(["input", 2, 0, 1], [1, 4, 10**9, 56, 1, 16]), "not in 1..8192"),
        (changed(["config", "entity"], []), "not a whole line"),
        (changed(["config", "entity", 1, 2], [7, 7]), "tile_h is 7 x 7, and the axis has 56"),
        (changed(["config", "entity", 1, 2], [-1, 9]), "tile_h is -1 x 9"),
        (changed(["config", "entity", 1, 2], [-1, 0]), "tile_h is -1 x 0"),
        (changed(["config", "entity", 1, 2], [-1, 56]), "the input memory: broken by"),
        (changed(["config", "entity", 5, 2], 3), "tiles divide their axes"),
        (changed(["result"], [[1e9], 4, 10.0, 1.0]), "it failed there: error 4"),
        (changed(["result", 0], []), "no time"),
        (changed(["result", 0], [-1.0]), "it took -1.0 s"),
        (changed(["result", 0], [0.001]), "1000 us, and its multiplications alone take 4516 us"),
        (changed(["result"], 3), "not a whole line"),
    ],
)
def test_what_cannot_be_is_refused_by_name(text: str, why: str) -> None:
    assert is_log_line(text)
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        read_line(text, PYNQ)


def test_times_that_are_those_of_another_line_are_refused() -> None:
    other = changed(["config", "entity", 1, 2], [-1, 7])
    lines = [(17, json.dumps(document())), (22, other)]
    records, (refused,) = records_of_log(lines, PYNQ)
    assert len(records) == 1
    assert (refused.line, refused.why) == (22, "its times are those of line 17")


@pytest.mark.parametrize("ended", ["-5", "1e999", "1e300"])
def test_a_line_of_an_impossible_day_is_refused_and_the_others_are_kept(ended: str) -> None:
    odd = json.dumps(document()).replace("1553127163.5", ended)
    records, (refused,) = records_of_log([(1, odd), (2, json.dumps(document()))], PYNQ)
    assert len(records) == 1
    assert (refused.line, refused.why) == (1, f"it took 0.0057 and ended at {float(ended):g}")


@pytest.mark.parametrize("text", ["", "hello", "3", "[]", "{}", '{"schema": 1}'])
def test_other_lines_are_none_of_autotvm(text: str) -> None:
    assert not is_log_line(text)


@pytest.mark.parametrize("name", ["C2", "C4", "C8"])
def test_what_is_written_is_read_back(name: str) -> None:
    best = OLD_FLOW[name].best
    choice = (best.tile_h, best.tile_w, best.tile_ci, best.tile_co, best.oc_nthread, best.h_nthread)
    convolution = RESNET18[name]
    line = document(choice, seconds=0.1)
    workload = convolution.workload(PYNQ)
    line["input"][2][0][1] = list(workload.inputs[0].shape)
    line["input"][2][1][1] = list(workload.inputs[1].shape)
    line["input"][2][2] = [convolution.stride] * 2
    line["input"][2][3] = [convolution.pad] * 4
    (record,), _ = records_of_log([(1, json.dumps(line))], PYNQ)
    written = to_log_line(record, PYNQ)
    assert written is not None
    assert read_line(written, PYNQ).choice == TemplateChoice(*choice)
    counted = to_log_line(replace(record, cycles=best.cycles, wall_time=None), PYNQ)
    assert counted is not None
    assert read_line(counted, PYNQ).seconds == (best.cycles / 1e8,)


def test_what_the_template_has_no_word_for_is_not_written() -> None:
    (record,), _ = records_of_log([(1, json.dumps(document()))], PYNQ)
    depthwise = replace(record, workload=OTHER)
    assert to_log_line(depthwise, PYNQ) is None
    assert to_log_line(record, TARGETS["ultra96"]) is None
    narrow = tuple((k, 1 if k == "tile_kh" else v) for k, v in record.point)
    assert to_log_line(replace(record, point=narrow), PYNQ) is None


OTHER = replace(RESNET18["C2"], depthwise=True).workload(PYNQ)


def test_numbers_of_configurations_are_those_of_autotvm() -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("the table of the template's points is not here")
    layers = {name: TemplateLayer.of(RESNET18[name].workload(PYNQ)) for name in OLD_FLOW}
    with (shared / "peer" / "autotvm_space.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            layer = layers[row["layer"]]
            assert layer is not None
            choice = TemplateChoice(*(int(row[n]) for n in TemplateChoice.__dataclass_fields__))
            assert index_of(choice, layer) == int(row["index"])
