"""The output folder: whose it is, and nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import OutputError

from driver.atomic_write import write_atomically
from driver.tune.output import OutputFolder, RunIdentity


def identity(model: bytes = b"model", target: bytes = b"target") -> RunIdentity:
    return RunIdentity(model=Digest.of(model), target=Digest.of(target), seed=0, proposer="guided")


def test_the_first_run_makes_it_and_the_same_run_continues(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out"
    OutputFolder.open(path, identity(), {"model": "net.onnx"})
    document = json.loads((path / "run.json").read_text())
    assert document["model"] == "net.onnx"
    assert document["model_digest"] == Digest.of(b"model").hex
    OutputFolder.open(path, identity(), {})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (identity(model=b"x"), "another model"),
        (identity(target=b"x"), "another target"),
        (identity(model=b"x", target=b"x"), "another model and another target"),
    ],
)
def test_the_folder_of_another_run_is_refused(
    other: RunIdentity, words: str, tmp_path: Path
) -> None:
    OutputFolder.open(tmp_path, identity(), {})
    with pytest.raises(OutputError, match=words) as refused:
        OutputFolder.open(tmp_path, other, {})
    assert "--out" in refused.value.hint


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match="something else"):
        OutputFolder.open(tmp_path, identity(), {})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_a_run_left_that_was_killed_as_it_claimed_the_folder_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        patched.setattr(Path, "unlink", killed)
        with pytest.raises(SystemExit):
            OutputFolder.open(tmp_path, identity(), {})
    (draft,) = tmp_path.iterdir()
    assert draft.name.startswith(".run.json-")
    OutputFolder.open(tmp_path, identity(), {})
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "log"}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"schema": 99}', '{"schema": 1}'])
def test_a_damaged_description_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(OutputError):
        OutputFolder.open(tmp_path, identity(), {})


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError):
        OutputFolder.open(tmp_path / "out", identity(), {})
    with pytest.raises(OutputError, match="cannot be written: Not a directory"):
        OutputFolder.open(tmp_path / "out" / "deeper", identity(), {})


def test_forgetting_removes_a_run_and_nothing_else(tmp_path: Path) -> None:
    OutputFolder(tmp_path / "absent").forget()
    OutputFolder.open(tmp_path / "out", identity(), {})
    OutputFolder(tmp_path / "out").forget()
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(OutputError):
        OutputFolder(tmp_path / "mine").forget()
    assert (tmp_path / "mine").exists()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        write_atomically(tmp_path / "absent" / "f", b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        write_atomically(tmp_path / "folder", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
