"""Files that are written whole or not at all, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tilefarm.errors import OutputError

from driver.atomic_write import drafts, write_atomically


def test_a_file_is_replaced_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    for text in (b"old", b"new"):
        write_atomically(path, text)
        assert path.read_bytes() == text
    assert drafts(path) == []


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(path, b"text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert path.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        write_atomically(tmp_path, b"text")
