"""Bisection on a repository: what it builds, what is kept when it is killed, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.repositories import git
from tilefarm.errors import DataError, OutputError

from driver.jobs.nightly.bisect.bisection import MeasuredCommits, bisected
from driver.jobs.nightly.bisect.checkout import Checkout, Commit

FIRST_BAD = 6


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Ten commits; the third does not build, and from the seventh on it takes longer."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for at in range(10):
        (folder / "cost").write_text(f"{1000 + 30 * (at >= FIRST_BAD)}\n")
        (folder / "code").write_text("false" if at == 2 else "true")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", f"number {at}", "--allow-empty")
    return folder


def checkout(repository: Path, tmp_path: Path) -> Checkout:
    return Checkout(repository, tmp_path / "built", ["sh", "code"], tmp_path / "log.txt")


def measurer(where: Checkout, seen: list[str]) -> Callable[[Commit], float | str]:
    def measure(commit: Commit) -> float | str:
        seen.append(commit.title)
        return where.built(commit) or float((where.folder / "cost").read_text())

    return measure


def ends(repository: Path) -> tuple[str, str]:
    return git(repository, "rev-parse", "main~9"), git(repository, "rev-parse", "main")


def test_it_finds_the_commit_and_leaves_the_users_checkout_alone(
    repository: Path, tmp_path: Path
) -> None:
    where, seen = checkout(repository, tmp_path), list[str]()
    (repository / "cost").write_text("the user's own")
    commits = where.commits(*ends(repository))
    kept = MeasuredCommits(tmp_path / "kept.jsonl", "a row")
    said = list[str]()
    search = bisected(commits, 0.0, kept, measurer(where, seen), said.append)
    assert [commits[at].title for at in search.found()] == [f"number {FIRST_BAD}"]
    assert len(seen) <= 6
    assert (repository / "cost").read_text() == "the user's own"
    assert any("may be it" in line for line in said)
    where.remove()
    assert not where.folder.exists()


def test_after_a_kill_nothing_is_measured_twice(repository: Path, tmp_path: Path) -> None:
    where, seen = checkout(repository, tmp_path), list[str]()
    commits = where.commits(*ends(repository))
    path = tmp_path / "kept.jsonl"
    whole = measurer(where, seen)

    def killed(commit: Commit) -> float | str:
        if len(seen) == 3:
            raise KeyboardInterrupt
        return whole(commit)

    with pytest.raises(KeyboardInterrupt):
        bisected(commits, 0.0, MeasuredCommits(path, "a row"), killed, lambda _: None)
    with path.open("a") as stream:
        stream.write('{"commit": "cut o')
    search = bisected(commits, 0.0, MeasuredCommits(path, "a row"), whole, lambda _: None)
    assert [commits[at].title for at in search.found()] == [f"number {FIRST_BAD}"]
    assert len(seen) == len(set(seen))
    again = list[str]()
    kept = MeasuredCommits(path, "a row")
    assert bisected(commits, 0.0, kept, measurer(where, again), lambda _: None) == search
    assert not again


def test_a_commit_that_does_not_build_is_left_out(repository: Path, tmp_path: Path) -> None:
    where = checkout(repository, tmp_path)
    commits = where.commits(*ends(repository))
    assert "does not build" in where.built(commits[2])
    assert where.built(commits[3]) == ""
    assert "number 2" in (tmp_path / "log.txt").read_text()
    absent = Checkout(repository, tmp_path / "built", ["no-such-tool"], tmp_path / "log.txt")
    assert "no-such-tool" in absent.built(commits[0])


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("main", "main", "same commit"),
        ("main", "main~3", "is not before"),
        ("nothing", "main", "no commit of"),
        ("--output=x", "main", "no commit of"),
        ("main~4", "", "no commit of"),
    ],
)
def test_commits_that_are_no_range_are_refused(
    repository: Path, tmp_path: Path, good: str, bad: str, words: str
) -> None:
    with pytest.raises(DataError, match=words) as caught:
        checkout(repository, tmp_path).commits(good, bad)
    assert caught.value.hint


def test_a_folder_without_a_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no commit of"):
        checkout(tmp_path, tmp_path).commits("a1b2c3d", "main")


@pytest.mark.parametrize("text", ["[]\n", '{"schema": 1}\n', "not JSON\n", '{"schema": 9}\n'])
def test_what_is_no_record_is_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(text)
    with pytest.raises(OutputError, match=r"record of a bisection|another bisection"):
        MeasuredCommits(path, "a row")
    assert path.read_text() == text


def test_the_record_of_another_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    MeasuredCommits(path, "a row").add(Commit("a" * 40, "x"), 1.0)
    with pytest.raises(OutputError, match="another bisection: a row"):
        MeasuredCommits(path, "another row")
