"""A workload from a file is the one that was written, or an error that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kit.kernels.nests import EXAMPLES, SIM, conv2d
from tilefarm.errors import DataError

from driver.commands.compile_steps.workload_file import read_workload

WORK = conv2d(1, 2, 8, 8)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_operator_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(EXAMPLES[name].to_json())
    assert read_workload(file, SIM) == EXAMPLES[name]


@pytest.mark.parametrize("text", ["", "[]", "{}", "x", '{"operator": 3}', "[" * 100_000])
def test_other_text_is_no_workload(tmp_path: Path, text: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(text)
    with pytest.raises(DataError, match="not a workload"):
        read_workload(file, SIM)


def test_planes_are_for_some_operators_only(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    for name in ("matmul", "conv2d_transpose"):
        given = json.loads(EXAMPLES[name].to_json())
        for planes in ("planes", "data_planes", "out_planes"):
            file.write_text(json.dumps({**given, "attrs": {**given["attrs"], planes: 2}}))
            with pytest.raises(DataError, match=f"the tensors of {name} are never in planes"):
                read_workload(file, SIM)


@pytest.mark.parametrize(
    ("name", "changed", "why"),
    [
        ("conv2d_bordered", {"border": [9, 0, 0, 0]}, "nothing is within"),
        ("conv2d_bordered", {"border": [1, 1, 1, 1]}, "in bounds"),
        ("conv2d_bordered", {"border": 1}, "not a tuple"),
        ("conv2d_transpose", {"border": [1, 1, 1, 1]}, "outputs of conv2d_transpose have no bord"),
        ("border", {"border": [0, 0, 0, 0]}, "nothing to fill"),
        ("border", {"border": [5, 0, 0, 0]}, "nothing is within"),
        ("border", {"fill": 128}, "fill is 128"),
    ],
)
def test_borders_fit_their_outputs(
    tmp_path: Path, name: str, changed: dict[str, Any], why: str
) -> None:
    file = tmp_path / "w.json"
    given = json.loads(EXAMPLES[name].to_json())
    file.write_text(json.dumps({**given, "attrs": {**given["attrs"], **changed}}))
    with pytest.raises(DataError, match=why):
        read_workload(file, SIM)


def test_a_border_is_made_of_nothing(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    for name, why in (("border", "border has no inputs"), ("conv2d", "conv2d has inputs")):
        inputs = [] if name == "conv2d" else [["x", [1, 16], "int8"]]
        file.write_text(json.dumps({**json.loads(EXAMPLES[name].to_json()), "inputs": inputs}))
        with pytest.raises(DataError, match=why):
            read_workload(file, SIM)


def test_as_many_input_blocks_as_a_network_likes(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    work = conv2d(300, 1, 1, 1, kernel=(1, 1), pad=(0, 0, 0, 0), planes=2)
    file.write_text(work.to_json())
    assert read_workload(file, SIM) == work


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("none.json", "bytes", "."):
        with pytest.raises(DataError, match="cannot be read"):
            read_workload(tmp_path / name, SIM)


def _broken(**changed: Any) -> dict[str, Any]:
    return {**json.loads(WORK.to_json()), **changed}


GIVEN = json.loads(WORK.to_json())
DATA, *REST = GIVEN["inputs"]
WIDE = json.loads(conv2d(1, 2, 8, 8, planes=2).to_json())


def _wide(**changed: Any) -> dict[str, Any]:
    return {**WIDE, **changed}


ALL_WIDE = json.loads(conv2d(1, 2, 8, 8, planes=2, data_planes=2, out_planes=2).to_json())


def _all_wide(**changed: Any) -> dict[str, Any]:
    return {**ALL_WIDE, **changed}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (_broken(attrs={}), "conv2d needs the attribute 'pad'"),
        (_broken(attrs={**GIVEN["attrs"], "stride": "x"}), "stride is x: whole numbers from 1"),
        (_broken(attrs={**GIVEN["attrs"], "stride": [0, 1]}), r"stride is \(0, 1\)"),
        (_broken(attrs={**GIVEN["attrs"], "pad": 1}), "conv2d.pad is 1, not a tuple"),
        (_broken(inputs=[DATA]), "do not fit together"),
        (_broken(inputs=[]), "has inputs and an output"),
        (_broken(inputs=[["data", [1, 1, -8, 8, 1, 16], "int8"], *REST]), "data: .*from 1 on"),
        (_broken(inputs=[["data", [1, 1, 8.5, 8, 1, 16], "int8"], *REST]), "data: .*from 1 on"),
        (_broken(inputs=GIVEN["inputs"][:-2]), "conv2d needs the tensor 'unit'"),
        (
            _broken(inputs=[["data", [1, 1, 1 << 20, 1 << 20, 1, 16], "int8"], *REST]),
            "17592186044416 bytes: the accelerator's addresses have 32 bits",
        ),
        (
            _broken(inputs=[["data", [1, 1, 1 << 17, 1, 1, 16], "int8"], *REST]),
            "extents on the accelerator are at most 65536",
        ),
        (
            _broken(inputs=[DATA, ["weight", [2, 1, 300, 3, 16, 16], "int8"], *REST[1:]]),
            "windows have at most 256 rows and columns",
        ),
        (
            _broken(inputs=[DATA, ["weight", [2, 2, 1, 300, 3, 16, 16], "int8"], *REST[1:]]),
            "windows have at most 256 rows and columns",
        ),
        (_broken(attrs={**GIVEN["attrs"], "planes": 2}), "do not fit together"),
        (_broken(attrs={**GIVEN["attrs"], "planes": 3}), "planes is 3: 16 bits are 2 planes"),
        (_broken(attrs={**GIVEN["attrs"], "planes": "x"}), "planes is 'x', not an integer"),
        (_wide(attrs={**WIDE["attrs"], "groups": 2}), "2 groups do not divide 1 input and"),
        (
            _wide(inputs=[*WIDE["inputs"], ["factor", [2, 1, 16], "int32"]]),
            "sums in planes have no factor",
        ),
        (_broken(attrs={**GIVEN["attrs"], "data_planes": 2}), "do not fit together"),
        (_broken(attrs={**GIVEN["attrs"], "out_planes": 2}), "out: .* would be"),
        (_all_wide(attrs={**ALL_WIDE["attrs"], "hi": 32_640}), "two planes hold -32768 to 32639"),
        (_all_wide(attrs={**ALL_WIDE["attrs"], "out_planes": 1, "hi": 127, "lo": 0}), "would be"),
        (_all_wide(attrs={**ALL_WIDE["attrs"], "data_planes": 0}), "data_planes is 0: 16 bits are"),
        (_wide(inputs=[WIDE["inputs"][0], *REST]), "do not fit together"),
        (_broken(outputs=[["out", [1, 2, 9, 8, 1, 16], "int8"]]), "do not fit together"),
        (_broken(outputs=[["out", [1, 2, 8, 8, 1, 8], "int8"]]), "out: .* would be"),
    ],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:20],
)
def test_what_cannot_be_is_named(tmp_path: Path, document: dict[str, Any], why: str) -> None:
    file = tmp_path / "w.json"
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=why) as caught:
        read_workload(file, SIM)
    assert "conv2d is (data, weight" in caught.value.hint
