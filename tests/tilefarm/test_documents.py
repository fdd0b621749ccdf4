"""Texts that others wrote as JSON or TOML, or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilefarm import documents
from tilefarm.documents import decoded, read_json, read_text, read_toml

NONE: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"a": [1,',
    "bytes": b"\xff\xfe\x00{",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "no number": b"NaN",
    "infinite": b'{"a": -Infinity}',
    "digits": b"1" * 5_000,
}


@pytest.mark.parametrize("content", NONE.values(), ids=NONE)
def test_what_is_no_document_says_so(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decoded(content)
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        read_json(tmp_path / "file")


def test_documents_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"ä": [1, 2.5, null]}', encoding="utf-8")
    assert read_json(tmp_path / "file") == {"ä": [1, 2.5, None]}


def test_a_file_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_NBYTES", 1 << 20)
    with pytest.raises(ValueError, match="more than 1 MiB"):
        read_json(Path("/dev/zero"))
    with pytest.raises(ValueError, match="more than 1 MiB"):
        read_text(Path("/dev/zero"))


def test_a_text_may_begin_with_a_mark_and_end_its_lines_with_two(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes("\ufeffname = 'ä'\r\n".encode())
    assert read_text(tmp_path / "file") == "name = 'ä'\n"
    assert read_toml(tmp_path / "file") == {"name": "ä"}


@pytest.mark.parametrize(
    "content", [b"name", b"\xff", b"a = " + b"[" * 100_000], ids=["half", "bytes", "deep"]
)
def test_what_is_no_toml_says_so(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"\w"):
        read_toml(tmp_path / "file")
