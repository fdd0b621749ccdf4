"""Parcels: the same bytes for the same files, and nothing but whole files comes out."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, CorruptBlobError, DataError

from driver.jobs.bundle import packed, unpack
from driver.jobs.transfer import content_of, lines_of


def test_a_bundle_is_a_function_of_names_and_contents(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1" * 1000)
    two.write_bytes(b"2")
    content = packed({"a": one, "b/c": two})
    one.touch()
    assert packed({"b/c": two, "a": one}) == content
    unpack(content, Digest.of(content), tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"1" * 1000
    assert (tmp_path / "out/b/c").read_bytes() == b"2"


def test_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing-here: cannot be read: No such file"):
        packed({"a": tmp_path / "nothing-here"})
    with pytest.raises(CorruptBlobError, match="arrived as another one"):
        unpack(b"abc", Digest.of(b"abd"), tmp_path)
    with pytest.raises(CorruptBlobError, match="is no archive"):
        unpack(b"abc", Digest.of(b"abc"), tmp_path)


def test_a_bundle_that_would_be_too_large_is_not_made(tmp_path: Path) -> None:
    noise, gap = tmp_path / "noise", tmp_path / "gap"
    noise.write_bytes(random.Random(0).randbytes(3 << 20))
    with gap.open("wb") as stream:
        stream.truncate(1 << 30)
    assert len(packed({"a": noise}, 4 << 20)) > 3 << 20
    for files in ({"a": noise}, {"a": noise, "b": gap}):
        with pytest.raises(CapacityError, match="more than 2 MiB, packed"):
            packed(files, 2 << 20)


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_nothing_is_written_outside_of_the_folder(name: str, tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("first", b"")
        archive.writestr(name, b"")
    with pytest.raises(CorruptBlobError, match="not below it"):
        unpack(content.getvalue(), Digest.of(content.getvalue()), tmp_path / "in")
    assert not list(tmp_path.rglob("*"))


def test_a_folder_travels_as_lines_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for name in ("report.html", "log/x", "records.sqlite", "records.sqlite-wal", ".hidden"):
        (tmp_path / name).write_bytes(name.encode() * 9000)
    lines = ["Ray says something", *lines_of(tmp_path), "and goes on"]
    digest, content = content_of("\n".join(lines))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["log/x", "records.sqlite", "report.html"]
    assert digest == Digest.of(content)
    with pytest.raises(CorruptBlobError, match="ends before its bundle does"):
        content_of("\n".join(lines[:-2]))
    with pytest.raises(CorruptBlobError, match="is no bundle"):
        content_of("\n".join([*lines[:2], "?", *lines[2:]]))


def test_an_empty_folder_has_nothing_to_send(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing is there"):
        list(lines_of(tmp_path))


@given(st.text())
def test_any_other_log_is_refused(log: str) -> None:
    with pytest.raises(CorruptBlobError):
        content_of(log)
