"""The original hardware's vta_config.json as a target: what it means, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilefarm.errors import TargetError
from tilefarm.target import TARGETS, load_target, target_from_document

LOGS: dict[str, Any] = {
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 0,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}
SAMPLE: dict[str, Any] = {"TARGET": "pynq", "HW_VER": "0.0.2", **LOGS}
GEOMETRY = "1x16_i8w8a32_15_15_18_17"


def reason(document: object) -> str:
    with pytest.raises(TargetError) as caught:
        target_from_document(document, where="vta_config.json")
    assert "nine LOG_* keys" in caught.value.hint
    assert "\n" not in caught.value.what
    return caught.value.what


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("sim", "sim"),
        ("pynq", "pynq-z1"),
        ("de10nano", "de10-nano"),
        ("ultra96", "ultra96"),
        ("zcu104", "zcu104"),
    ],
)
def test_a_sample_file_is_the_built_in_target_of_its_board(
    kind: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps({**SAMPLE, "TARGET": kind}))
    target = load_target(str(path))
    assert target == replace(TARGETS[name], name=f"{kind}_{GEOMETRY}")
    assert target.digest == TARGETS[name].digest


def test_tsim_is_the_rtl_below_the_original_runtime() -> None:
    target = target_from_document({**SAMPLE, "TARGET": "tsim"}, where="t")
    assert target.timing == TARGETS["sim-de10"].timing
    assert target.board == replace(TARGETS["sim"].board, runtime="original")


def test_our_own_text_of_a_geometry_is_taken() -> None:
    vta = TARGETS["sim"].geometry
    assert target_from_document(json.loads(vta.to_json()), where="t").geometry == vta


def test_the_geometry_is_the_file_s() -> None:
    target = target_from_document({**SAMPLE, "LOG_BLOCK": 5, "LOG_WGT_BUFF_SIZE": 19}, where="t")
    assert (target.geometry.log_block, target.geometry.log_wgt_buff_size) == (5, 19)
    assert target.name == "pynq_1x32_i8w8a32_15_15_19_17"


@pytest.mark.parametrize("key", [*LOGS, "TARGET"])
def test_a_missing_key_is_named(key: str) -> None:
    document = {name: value for name, value in SAMPLE.items() if name != key}
    assert reason(document).startswith(f"vta_config.json: {key}: missing")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"TARGET": "fpga"}, "TARGET: 'fpga'; one of sim, tsim, pynq, de10nano, ultra96, zcu104"),
        ({"TARGET": ["pynq"]}, "TARGET: ['pynq']; one of"),
        ({"TARGET": "intelfocl"}, "the built-in sim-mul has its MUL"),
        ({"COLOUR": 3}, "COLOUR: unknown key"),
        ({"log_block": 3}, "log_block: unknown key"),
        ({"LOG_BLOCK_IN": 4}, "LOG_BLOCK_IN: follows from LOG_BLOCK, leave it out"),
        ({"LOG_OUT_BUFF_SIZE": 15}, "LOG_OUT_BUFF_SIZE: follows from LOG_ACC_BUFF_SIZE"),
        ({"LOG_BLOCK": "4"}, "LOG_BLOCK: '4' is not an integer"),
        ({"LOG_BLOCK": True}, "LOG_BLOCK: True is not an integer"),
        ({"LOG_BLOCK": -1}, "LOG_BLOCK: -1 is not within 0..28; it is a power of two"),
        ({"LOG_INP_BUFF_SIZE": 32768}, "LOG_INP_BUFF_SIZE: 32768 is not within 0..28"),
        ({"HW_VER": 2}, "HW_VER: 2 is not a text"),
        ({"LOG_INP_WIDTH": 4}, "element widths other than int8"),
        ({"TARGET": "de10nano", "LOG_BATCH": 1}, "computes the first row of a batch only"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(change: dict[str, object], expected: str) -> None:
    assert expected in reason({**SAMPLE, **change})


def test_all_reasons_are_told_at_once() -> None:
    told = reason({"TARGET": "x", **LOGS, "LOG_BATCH": None, "A": 1})
    for part in ("A: unknown key", "LOG_BATCH: None is not an integer", "TARGET: 'x'"):
        assert part in told
