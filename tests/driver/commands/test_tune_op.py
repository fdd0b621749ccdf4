"""Operators in words on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver.cli import main


def test_a_file_of_operators_is_tuned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layers.txt").write_text("gemm m=8 n=16 k=16 # a layer\nadd c=16 h=4 w=4\n")
    words = ["tune-op", "layers.txt", "--trials", "6", "--devices", "1", "--no-ray"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "0 differ from the reference" in said
    assert "scaled_add" in said
    assert (tmp_path / "tilefarm-out" / "2_operators" / "program").is_dir()


@pytest.mark.parametrize("words", ["absent.txt", ".", "gemm m=2", "nonsense=1"])
def test_what_cannot_be_tuned_is_refused(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune-op", words]) == 2
    assert capsys.readouterr().err.startswith("tilefarm tune-op: ")
    assert not list(tmp_path.iterdir())


def test_bytes_are_no_operators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff\x00\x80")
    assert main(["tune-op", str(path)]) == 2
    assert "no text" in capsys.readouterr().err
