"""Program files: what is written comes back, and what is broken is told by field."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kit.examples import examples
from kit.kernels.programs import dense_program
from kit.shared import shared_folder
from tilefarm.errors import DataError, OutputError, TargetError, UserError
from tilefarm.target import BusTiming, Target, VtaConfig

from device_server.vta.programs.program import (
    Program,
    Regions,
    read_program,
    with_target,
    write_program,
)


def complete_program() -> Program:
    program = dense_program(meta={"kind": "micro"})
    spans = np.stack([np.arange(9), np.arange(9) + 2], axis=1)
    return replace(program, cycles=7, accumulator_writes=12, spans=spans, stream_address=4096)


def fields_of(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def read_or_refused(path: Path) -> None:
    """Fails unless the file is read, or is refused by an error that names it."""
    why = ""
    try:
        read_program(path)
    except UserError as error:
        why = error.what
    assert not why or path.name in why


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "program.npz"
    write_program(path, complete_program())
    return path


def test_what_is_written_comes_back(written: Path) -> None:
    program, again = complete_program(), read_program(written)
    np.testing.assert_array_equal(again.instructions, program.instructions)
    np.testing.assert_array_equal(again.image(), program.image())
    np.testing.assert_array_equal(again.expected_image(), program.expected_image())
    np.testing.assert_array_equal(again.spans, program.spans)
    assert (again.cycles, again.accumulator_writes, again.stream_address) == (7, 12, 4096)
    assert again.meta == program.meta
    assert again.name == "dense"


def test_equal_programs_make_equal_files(written: Path, tmp_path: Path) -> None:
    write_program(tmp_path / "again.npz", read_program(written))
    assert (tmp_path / "again.npz").read_bytes() == written.read_bytes()


def test_the_fields_are_those_of_the_vectors(written: Path) -> None:
    before = ["insns", "insn_addr", "dram_size", "segments", "dram"]
    after = ["cycles", "ucnt", "after_segments", "after", "t_start", "t_end"]
    assert list(fields_of(written)) == [*before, *after, "meta"]


def test_what_is_not_known_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bare.npz"
    write_program(path, replace(dense_program(), after=None))
    again = read_program(path)
    assert (again.cycles, again.after, again.spans) == (None, None, None)
    assert again.expected_image() is None


@pytest.mark.parametrize(
    "target",
    [
        Target(name="default"),
        Target(name="short bursts", timing=BusTiming(log_burst_beats=4)),
        Target(name="wide", timing=BusTiming(bus_nbytes=16)),
        Target(name="small", vta=VtaConfig(log_wgt_buff_size=17)),
    ],
    ids=lambda target: target.name,
)
def test_the_accelerator_is_part_of_the_program(target: Target, tmp_path: Path) -> None:
    path = tmp_path / "program.npz"
    write_program(path, replace(dense_program(), meta=with_target({}, target)))
    again = read_program(path).target
    assert (again.vta, again.timing) == (target.geometry, target.timing)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no instructions": ({"insns": None}, "'insns' is missing"),
    "empty": ({"insns": np.zeros((0, 2), np.uint64)}, "'insns' is empty"),
    "flat": ({"insns": np.zeros(4, np.uint64)}, "'insns' has shape [4], not [n, 2]"),
    "signed": ({"insns": np.zeros((4, 2), np.int64)}, "'insns' holds int64, not uint64"),
    "no size": ({"dram_size": None}, "'dram_size' is missing"),
    "negative size": ({"dram_size": np.int64(-1)}, "'dram_size' is negative"),
    "huge size": ({"dram_size": np.int64(1 << 40)}, "'dram_size' is above"),
    "beyond": ({"dram_size": np.int64(500)}, "'segments' row"),
    "short content": ({"dram": np.zeros(3, np.uint8)}, "'dram' has 3 bytes"),
    "negative address": ({"segments": np.array([[-8, 8]])}, "'segments' row 0"),
    "wrapping": ({"segments": np.array([[8, (1 << 63) - 4]])}, "'segments' row 0"),
    "half an answer": ({"after": None}, "'after' is missing"),
    "other half": ({"after_segments": None}, "'after_segments' is missing"),
    "half of the spans": ({"t_end": None}, "'t_end' is missing"),
    "few spans": ({"t_start": np.zeros(3, np.int32)}, "'t_start' has shape [3], not [9]"),
    "float cycles": ({"cycles": np.float64(3)}, "'cycles' holds float64, not int64"),
    "negative cycles": ({"cycles": np.int64(-3)}, "'cycles' is negative"),
    "no meta": ({"meta": None}, "'meta' is missing"),
    "meta is a number": ({"meta": np.int64(3)}, "'meta' holds int64, not text"),
    "meta is no JSON": ({"meta": np.array("{")}, "'meta' is not JSON"),
    "meta has NaN": ({"meta": np.array('{"len_bits": NaN}')}, "'meta' is not JSON"),
    "meta is a list": ({"meta": np.array("[]")}, "'meta' is not a JSON object"),
    "no len_bits": ({"meta": np.array("{}")}, "no integer len_bits"),
}


@pytest.mark.parametrize(("change", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_field_is_named(
    change: dict[str, Any], why: str, written: Path, tmp_path: Path
) -> None:
    fields = {k: v for k, v in (fields_of(written) | change).items() if v is not None}
    broken = tmp_path / "broken.npz"
    np.savez(broken, allow_pickle=True, **fields)
    with pytest.raises(DataError) as error:
        read_program(broken)
    assert why in error.value.what
    assert error.value.what.startswith(str(broken))
    assert "\n" not in error.value.what


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ('{"len_bits": 9}', "log_burst_beats: 9"),
        ('{"len_bits": 8, "target": {"name": "x"}}', "vta: missing section"),
        ('{"len_bits": 8, "target": 3}', "a target is a JSON object"),
    ],
)
def test_an_impossible_accelerator_is_told(meta: str, why: str, written: Path) -> None:
    np.savez(written, **(fields_of(written) | {"meta": np.array(meta)}))
    with pytest.raises(TargetError) as error:
        read_program(written)
    assert why in error.value.what
    assert str(written) in error.value.what


def test_objects_are_never_unpickled(written: Path) -> None:
    fields = fields_of(written) | {"dram": np.array([{}], dtype=object)}
    np.savez(written, allow_pickle=True, **fields)
    with pytest.raises(DataError, match="'dram' holds Python objects"):
        read_program(written)


def test_an_array_that_claims_more_than_it_has_is_damaged(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "liar.npz"
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(path, "w") as sink:
        for name in source.namelist():
            content = source.read(name)
            if name == "insns.npy":
                content = content.replace(b"(9, 2)", b"(1 << 9, 2)"[:6]).replace(b"(9,", b"(7,")
            sink.writestr(name, content)
    with pytest.raises(DataError, match="'insns'"):
        read_program(path)


@pytest.mark.parametrize("what", ["missing", "folder", "empty", "text"])
def test_what_is_no_archive_is_told(what: str, tmp_path: Path) -> None:
    path = tmp_path / "program.npz"
    if what == "folder":
        path.mkdir()
    elif what != "missing":
        path.write_text("" if what == "empty" else "not an archive")
    with pytest.raises(DataError, match=r"program\.npz: (cannot be read|is not an \.npz)"):
        read_program(path)


def test_a_file_cut_anywhere_is_an_error(written: Path, tmp_path: Path) -> None:
    content = written.read_bytes()
    cut = tmp_path / "cut.npz"
    for nbytes in range(0, len(content), max(1, len(content) // 150)):
        cut.write_bytes(content[:nbytes])
        with pytest.raises(DataError, match=r"cut\.npz"):
            read_program(cut)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused(written: Path, data: st.DataObject) -> None:
    content = bytearray(written.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = written.with_name("damaged.npz")
    damaged.write_bytes(content)
    read_or_refused(damaged)


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_headers_are_read_or_refused(written: Path, data: st.DataObject) -> None:
    """The archive is whole, the arrays in it are not: what a checksum would not find."""
    damaged = written.with_name("damaged.npz")
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(damaged, "w") as sink:
        for name in source.namelist():
            content = bytearray(source.read(name))
            if name == data.draw(st.sampled_from(source.namelist())):
                at = data.draw(st.integers(0, min(len(content), 128) - 1))
                content[at] = data.draw(st.integers(0, 255))
            sink.writestr(name, bytes(content))
    read_or_refused(damaged)


@given(
    before=hnp.arrays(np.uint8, 300, elements=st.sampled_from([0, 0, 0, 1])),
    after=hnp.arrays(np.uint8, 300, elements=st.sampled_from([0, 0, 0, 1])),
)
@settings(max_examples=examples(60))
def test_changed_regions_make_the_second_image_of_the_first(
    before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]
) -> None:
    regions = Regions.changed(before, after)
    regions.write_to(before)
    np.testing.assert_array_equal(before, after)


def test_regions_far_apart_stay_apart() -> None:
    after = np.zeros(1000, np.uint8)
    after[[10, 12, 500]] = 1
    places = Regions.changed(np.zeros_like(after), after).places
    np.testing.assert_array_equal(places, [[10, 3], [500, 1]])


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        write_program(tmp_path / "no" / "such.npz", dense_program())


_SHARED = shared_folder()


@pytest.mark.skipif(_SHARED is None, reason="no folder shared next to the repository")
def test_a_golden_vector_survives_reading_and_writing(tmp_path: Path) -> None:
    assert _SHARED is not None
    source = _SHARED / "rtl-vectors" / "kernel_conv3x3_8_32_32_serial.npz"
    copy = tmp_path / "copy.npz"
    write_program(copy, read_program(source))
    fields, again = fields_of(source), fields_of(copy)
    assert fields.keys() == again.keys()
    for name in fields.keys() - {"meta"}:
        np.testing.assert_array_equal(fields[name], again[name])
        assert fields[name].dtype == again[name].dtype
