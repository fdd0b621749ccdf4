"""Temporary folders of runs: private, gone at the end, and swept when their run was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tilefarm.errors import OutputError

from driver.farm.scratch import scratch_folder

KILLED = "import os; from driver.farm.scratch import scratch_folder\n" + (
    "with scratch_folder() as f: print(f, flush=True); os.kill(os.getpid(), 9)"
)


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a short path in which scratch folders are made."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setattr("driver.farm.scratch.LONGEST", 60)
        yield Path(folder)


def test_it_is_the_owners_alone_and_gone_at_the_end(parent: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == parent
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "deep").mkdir()
    assert list(parent.iterdir()) == []


def test_living_runs_keep_theirs(parent: Path) -> None:
    with scratch_folder() as first, scratch_folder() as second:
        assert first.exists()
        assert second.exists()


def test_what_a_killed_run_left_is_removed_by_the_next(parent: Path) -> None:
    script = f"import tempfile; tempfile.tempdir = {str(parent)!r}\n"
    script += f"import driver.farm.scratch as s; s.LONGEST = 60\n{KILLED}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    left = Path(done.stdout.strip())
    assert left.exists()
    with scratch_folder():
        assert not left.exists()


def test_folders_of_others_stay(parent: Path) -> None:
    for name in ("tilefarm-run-nolock", "something"):
        (parent / name).mkdir()
    with scratch_folder():
        pass
    assert {p.name for p in parent.iterdir()} == {"tilefarm-run-nolock", "something"}


def test_one_without_a_lock_is_removed_when_it_is_old_and_ours(parent: Path) -> None:
    """Its run was killed before it had the lock, or when it had removed it."""
    two_hours_ago = time.time() - 7200
    old, fresh, elsewhere = (parent / f"tilefarm-run-{name}" for name in ("old", "fresh", "link"))
    kept = parent / "kept"
    for folder in (old, fresh, kept):
        (folder / "part").mkdir(parents=True)
    elsewhere.symlink_to(kept)
    for folder in (old, kept):
        os.utime(folder, (two_hours_ago, two_hours_ago))
    with scratch_folder():
        pass
    assert {p.name for p in parent.iterdir()} == {fresh.name, elsewhere.name, kept.name}
    assert (kept / "part").exists()


def test_a_lock_that_is_held_keeps_a_folder_however_old(parent: Path) -> None:
    with scratch_folder() as folder:
        os.utime(folder, (0, 0))
        with scratch_folder():
            pass
        assert folder.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody")
def test_those_of_other_users_stay(parent: Path) -> None:
    other = parent / "tilefarm-run-other"
    other.mkdir()
    os.utime(other, (0, 0))
    os.chown(other, 65534, 65534)
    with scratch_folder():
        pass
    assert other.exists()


def test_no_place_for_it_is_an_error_that_names_the_remedy(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "gone"))
    with (
        pytest.raises(OutputError, match="cannot be written: No such file") as error,
        scratch_folder(),
    ):
        pass
    assert "TMPDIR" in error.value.hint


def test_a_long_path_is_avoided(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.farm.scratch.LONGEST", 5)
    with scratch_folder() as folder:
        assert folder.parent == Path("/tmp")
