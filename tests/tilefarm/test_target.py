"""Targets from names and files; what is impossible is listed."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.digest import Digest
from tilefarm.errors import TargetError
from tilefarm.target import TARGETS, Target, impossibilities, load_target, target_from_document

SIM = TARGETS["sim"]
KEYS = [
    (section, key)
    for section, fields in asdict(SIM).items()
    if isinstance(fields, dict)
    for key in fields
]


HLS = [("board", "design", "hls"), ("limits", "max_shift", 15)]
ORIGINAL = [("board", "runtime", "original")]


def edited(*changes: tuple[str, str, object]) -> dict[str, Any]:
    """A whole target's document with some values changed."""
    document = deepcopy(asdict(SIM))
    for section, key, value in changes:
        document[section][key] = value
    return document


def reason(document: object) -> str:
    with pytest.raises(TargetError) as caught:
        target_from_document(document, where="t.json")
    assert "tilefarm targets" in caught.value.hint or not isinstance(document, dict)
    return caught.value.what


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_survives_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(TARGETS[name].to_json())
    assert load_target(str(path)) == TARGETS[name]
    assert load_target(name) is TARGETS[name]


@given(
    st.builds(
        replace,
        st.just(SIM),
        name=st.text(min_size=1),
        timing=st.builds(
            replace,
            st.just(SIM.timing),
            dram_delay_cycles=st.integers(0, 1000),
            bus_nbytes=st.sampled_from([8, 16, 32, 64]),
        ),
        host=st.builds(replace, st.just(SIM.host), cpu=st.text(max_size=8)),
    )
)
def test_any_possible_target_survives_json(target: Target) -> None:
    assert target_from_document(json.loads(target.to_json()), where="t") == target


def test_absent_sections_have_their_defaults() -> None:
    document = {"name": "mine", "vta": asdict(SIM.geometry)}
    assert target_from_document(document, where="t") == replace(SIM, name="mine")


def test_a_name_is_no_identity() -> None:
    assert replace(SIM, name="other").digest == SIM.digest
    assert TARGETS["sim-de10"].digest != SIM.digest


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_every_parameter_is_part_of_the_identity(section: str, key: str) -> None:
    value = asdict(SIM)[section][key]
    changed = value + "x" if isinstance(value, str) else value + 1
    part = replace(getattr(SIM, section), **{key: changed})
    assert replace(SIM, **{section: part}).digest != SIM.digest


def test_parameters_that_came_later_are_no_part_of_the_identity_where_they_are_as_ever() -> None:
    document = asdict(SIM)
    del document["name"], document["limits"]["alu_mul"], document["limits"]["max_shift"]
    del document["board"], document["machine"]
    assert SIM.digest == Digest.of_json(document)
    assert target_from_document({"name": "old", **document}, where="t").digest == SIM.digest
    assert TARGETS["sim-mul"].digest != SIM.digest


def test_records_of_earlier_versions_name_these_targets() -> None:
    known = {"sim": "952dfbffc30b", "sim-de10": "c7a10bba95d8", "sim-mul": "acfc21ec283d"}
    assert {name: TARGETS[name].digest.short for name in known} == known


def test_no_two_built_in_targets_are_the_same() -> None:
    assert len({target.digest for target in TARGETS.values()}) == len(TARGETS)


def test_a_board_has_a_twin_that_differs_in_its_host_alone() -> None:
    boards = [target for name, target in TARGETS.items() if f"sim-{name}" in TARGETS]
    assert [board.name for board in boards] == ["pynq-z1", "de10-nano", "ultra96", "zcu104"]
    for board in boards:
        twin = TARGETS[f"sim-{board.name}"]
        assert board.host != SIM.host
        assert twin == replace(board, name=twin.name, host=SIM.host)


def test_a_board_s_clock_makes_time_of_cycles() -> None:
    assert TARGETS["pynq-z1"].board.time_of(621_790) == "about 6.22 ms at 100 MHz"
    assert TARGETS["de10-nano"].board.time_of(50_000) == "0.5 ms at 100 MHz"
    assert SIM.board.time_of(50_000) == ""


def test_the_hls_design_has_its_limit_where_nothing_is_said() -> None:
    document = {"name": "mine", "vta": asdict(SIM.geometry), "board": {"design": "hls"}}
    assert target_from_document(document, where="t").limits.max_shift == 15


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_capability_is_true_or_false(value: object) -> None:
    expected = f"limits.alu_mul: {value!r} is not true or false"
    assert expected in reason(edited(("limits", "alu_mul", value)))


def test_the_built_in_targets_are_possible() -> None:
    for target in TARGETS.values():
        assert impossibilities(target) == []


def test_derived_sizes_are_those_of_the_default_hardware() -> None:
    vta = SIM.geometry
    assert (vta.batch, vta.block) == (1, 16)
    assert (vta.uop_nbytes, vta.inp_nbytes, vta.wgt_nbytes) == (4, 16, 256)
    assert (vta.acc_nbytes, vta.out_nbytes) == (64, 16)
    assert (vta.uop_depth, vta.inp_depth, vta.wgt_depth, vta.acc_depth) == (8192, 2048, 1024, 2048)
    assert json.loads(vta.to_json())["LOG_INP_BUFF_SIZE"] == 15


@pytest.mark.parametrize("key", [key for section, key in KEYS if section == "vta"])
def test_a_missing_value_of_the_accelerator_is_named(key: str) -> None:
    document = edited()
    del document["vta"][key]
    assert reason(document) == f"t.json: vta.{key}: missing"


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_value_of_another_type_is_named(section: str, key: str) -> None:
    assert f"{section}.{key}: None is not" in reason(edited((section, key, None)))
    assert f"{section}.{key}: [1] is not" in reason(edited((section, key, [1])))


@pytest.mark.parametrize(
    ("section", "key"), [(s, k) for s, k in KEYS if type(asdict(SIM)[s][k]) is int]
)
def test_a_number_that_is_not_an_integer_is_named(section: str, key: str) -> None:
    for value in (True, 1.5, "4"):
        expected = f"{section}.{key}: {value!r} is not an integer"
        assert expected in reason(edited((section, key, value)))
    assert f"{section}.{key}: {1 << 40} is out of any" in reason(edited((section, key, 1 << 40)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("vta", "log_block", -1)], "vta.log_block: -1 is negative"),
        ([("vta", "log_batch", 9), ("vta", "log_block", 1)], "vta.log_batch: 9, at most 8"),
        ([("timing", "outstanding_bursts", 257)], "timing.outstanding_bursts: at most 256"),
        ([("vta", "log_block", 7)], "vta: an element is larger than 4096 bytes"),
        ([("vta", "log_inp_buff_size", 21)], "vta: a buffer has more than 2^16 elements"),
        ([("vta", "log_inp_width", 4)], "element widths"),
        ([("vta", "log_wgt_width", 2)], "element widths"),
        ([("vta", "log_acc_width", 4)], "element widths"),
        ([("vta", "log_inp_buff_size", 3)], "vta.log_inp_buff_size: the buffer holds less"),
        ([("vta", "log_wgt_buff_size", 7)], "vta.log_wgt_buff_size: the buffer holds less"),
        ([("vta", "log_acc_buff_size", 5)], "vta.log_acc_buff_size: the buffer holds less"),
        ([("vta", "log_uop_buff_size", 1)], "vta.log_uop_buff_size: the buffer holds less"),
        ([("vta", "log_wgt_buff_size", 30)], "32 bits of a micro-op"),
        ([("vta", "log_acc_buff_size", 21)], "32 bits of a micro-op"),
        ([("vta", "log_acc_buff_size", 18)], "factors do not fit an ALU instruction"),
        ([("vta", "log_uop_buff_size", 16)], "micro-op addresses do not fit"),
        ([("timing", "bus_nbytes", 12)], "timing.bus_nbytes: 12"),
        ([("timing", "log_burst_beats", 0)], "timing.log_burst_beats: 0"),
        ([("timing", "log_burst_beats", 9)], "timing.log_burst_beats: 9"),
        ([("timing", "dram_delay_cycles", -1)], "timing.dram_delay_cycles: negative"),
        ([("timing", "queue_entries", 0)], "queue_entries and outstanding_bursts"),
        ([("timing", "outstanding_bursts", 0)], "queue_entries and outstanding_bursts"),
        ([("limits", "acc_distance", 0)], "acc_distance and kernel_uops"),
        ([("limits", "kernel_uops", 0)], "acc_distance and kernel_uops"),
        ([("limits", "buffers", 3)], "buffers is 1 or 2"),
        ([("limits", "max_shift", 14)], "limits.max_shift: 14 is not within 15..31; no network"),
        ([("limits", "max_shift", 32)], "limits.max_shift: 32 is not within 15..31"),
        ([("board", "design", "opencl")], "board.design: 'opencl' is none of chisel, hls"),
        ([("board", "runtime", "mine")], "board.runtime: 'mine' is none of tilefarm, original"),
        ([("board", "clock_mhz", -1)], "board.clock_mhz: -1 is not within 0..10000"),
        ([("board", "design", "hls")], "limits.max_shift: 31, but the HLS design takes shifts"),
        ([*HLS, ("limits", "alu_mul", True)], "the ALU of the HLS design has no MUL"),
        ([*HLS, ("limits", "acc_distance", 2)], "loses updates of an accumulator"),
        ([*ORIGINAL, ("vta", "log_batch", 1)], "the first row of a batch only"),
        ([*ORIGINAL, ("limits", "kernel_uops", 2049)], "the Chisel design holds 2048 micro-ops"),
    ],
)
def test_impossible_hardware_is_refused(
    changes: list[tuple[str, str, object]], expected: str
) -> None:
    assert expected in reason(edited(*changes))


def test_all_reasons_are_told_at_once() -> None:
    told = reason(edited(("timing", "bus_nbytes", 12), ("limits", "buffers", 3)))
    assert "bus_nbytes" in told
    assert "buffers is 1 or 2" in told
    document = edited(("vta", "log_block", "x"), ("timing", "speed", 1))
    del document["name"]
    told = reason({**document, "colour": "red"})
    for part in ("name: missing", "colour: unknown key", "timing.speed: unknown", "vta.log_block"):
        assert part in told


@pytest.mark.parametrize("document", [None, [], 3, "sim"])
def test_what_is_no_object_is_refused(document: object) -> None:
    assert "a target is a JSON object" in reason(document)


def test_missing_and_odd_sections_are_named() -> None:
    assert "vta: missing section" in reason({"name": "x"})
    assert "timing: not a JSON object" in reason({**edited(), "timing": 3})
    assert "name: missing, or not a text" in reason({**edited(), "name": 3})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        (None, "cannot read"),
    ],
    ids=["cut off", "empty", "deep", "absent"],
)
def test_a_file_that_cannot_be_read_is_told(
    tmp_path: Path, content: str | None, expected: str
) -> None:
    path = tmp_path / "t.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TargetError, match=expected):
        load_target(str(path))


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"\xef\xbb\xbf" + SIM.to_json().encode())
    assert load_target(str(path)) == SIM


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetError, match="is not JSON"):
        load_target(str(path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(TargetError, match="unknown target 'pynq'") as caught:
        load_target("pynq")
    assert "sim, sim-de10" in caught.value.hint
