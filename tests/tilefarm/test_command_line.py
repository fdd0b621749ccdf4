"""How every command line fails: one line, a remedy and an exit code, whatever the world is like."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tilefarm.command_line import HelpFormatter, Parser, guarded, whole_from
from tilefarm.errors import DiskError, OutputError, SettingsError, UserError
from tilefarm.system_errors import of_the_system, unwritable


def failing(error: BaseException) -> Callable[[], int]:
    def body() -> int:
        raise error

    return body


def ended(error: BaseException, capsys: pytest.CaptureFixture[str], out: Path | None = None) -> str:
    """What is said, without the exit code that stands before it."""
    code = guarded(lambda: "tilefarm x", failing(error), out=lambda: out)
    return f"{code} {capsys.readouterr().err}"


def test_an_error_without_a_remedy_points_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    said = ended(SettingsError("--n 0: at least 1"), capsys)
    assert (
        said == "2 tilefarm x: --n 0: at least 1\n  try: `tilefarm x --help` says what it takes\n"
    )


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "ls -ld"),
        (errno.EPERM, "lsattr"),
        (errno.ENAMETOOLONG, "shorter"),
        (errno.ELOOP, "link"),
        (errno.ENOTDIR, "is a file"),
        (errno.EISDIR, "this is a folder"),
        (errno.EROFS, "can be written"),
    ],
)
def test_a_path_that_the_system_refuses_is_bad_input(
    number: int, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ended(OSError(number, os.strerror(number), "some/file"), capsys)
    assert said.startswith(f"2 tilefarm x: some/file: {os.strerror(number)}\n  try: ")
    assert remedy in said


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("name", [None, "o/report.html"])
def test_a_disk_that_takes_nothing_is_nobodys_mistake(
    number: int, name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ended(OSError(number, os.strerror(number), name), capsys)
    assert said.startswith(f"75 tilefarm x: {name or 'output'}: cannot be written: ")
    assert "the same command then goes on" in said


def test_an_output_folder_that_somebody_removes_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path / "o" / "x"))
    said = ended(gone, capsys, tmp_path / "o")
    assert said.startswith(f"2 tilefarm x: {tmp_path / 'o' / 'x'}: has been removed while this ran")
    assert "internal error" in ended(gone, capsys, tmp_path / "other")


def test_a_fault_of_ours_leaves_its_traceback_in_the_output_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ended(ZeroDivisionError("by zero\nand more"), capsys, tmp_path)
    (log,) = tmp_path.iterdir()
    assert said == (
        "70 tilefarm x: internal error: ZeroDivisionError: by zero\n"
        f"  try: read {log}, and report it\n"
    )
    assert "raise error" in log.read_text()


@pytest.mark.parametrize("folder", ["absent", "file/below", "a" * 300, "loop"])
def test_where_the_output_folder_takes_no_log_a_temporary_one_does(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    said = ended(ZeroDivisionError(), capsys, tmp_path / folder)
    (log,) = (tmp_path / "temporary").iterdir()
    assert f"read {log}, and report it" in said


def test_where_nothing_can_be_written_the_line_says_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    said = ended(ZeroDivisionError(), capsys, tmp_path / "absent")
    assert said.startswith("70 tilefarm x: internal error: ZeroDivisionError: \n  try: set TMPDIR")
    assert "test_command_line.py" in said


def test_a_folder_that_was_removed_under_a_command_is_told(tmp_path: Path) -> None:
    """The current one; some shells stay in it."""
    folder = tmp_path / "gone"
    folder.mkdir()
    script = (
        f"import os, sys; sys.path = {sys.path!r}; os.rmdir({str(folder)!r})\n"
        "from pathlib import Path\n"
        "from tilefarm.command_line import guarded\n"
        "sys.exit(guarded(lambda: 'x', lambda: len(os.listdir(Path.cwd()))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (
        2,
        "x: the current folder has been removed\n  try: `cd` to another one\n",
    )


def test_a_stderr_that_takes_nothing_does_not_change_the_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    assert guarded(lambda: "x", failing(SettingsError("no", "yes"))) == 2
    assert guarded(lambda: "x", failing(ZeroDivisionError())) == 70


def test_names_that_are_no_text_are_printed() -> None:
    script = (
        f"import sys; sys.path = {sys.path!r}\n"
        "from tilefarm.command_line import guarded\n"
        "sys.exit(guarded(lambda: 'x', lambda: print('caf\\udce9.onnx') or 0))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "caf\\udce9.onnx\n", "")


def test_a_subcommand_complains_for_itself_and_says_what_it_was() -> None:
    top = Parser(prog="tool")
    commands = top.add_subparsers(dest="command", required=True)
    actions = commands.add_parser("bench").add_subparsers(dest="what", required=True)
    actions.add_parser("network").add_argument("--trials", type=int)
    assert top.parse_args(["bench", "network", "--trials", "3"]).prog == "tool bench network"
    for words in (["bench", "network", "--nosuch"], ["bench", "network", "--trials", "x"]):
        with pytest.raises(SettingsError) as error:
            top.parse_args(words)
        assert error.value.hint == "`tool bench network --help` lists what there is"
    with pytest.raises(SettingsError) as error:
        top.parse_args(["bench", "nosuch"])
    assert error.value.hint == "`tool bench --help` lists what there is"


def test_an_error_of_the_system_that_may_be_ours_is_not_explained_away() -> None:
    assert of_the_system(FileNotFoundError(errno.ENOENT, "No such file", "ours.so")) is None
    assert of_the_system(OSError("of a library")) is None
    assert of_the_system(PermissionError(errno.EPERM, "Operation not permitted")) is None
    assert isinstance(of_the_system(PermissionError(errno.EACCES, "no", b"\xff")), UserError)


def test_what_cannot_be_written_says_whether_the_disk_or_the_name_is_at_fault() -> None:
    full = unwritable("x", OSError(errno.ENOSPC, "No space left on device"), "another --out")
    assert isinstance(full, DiskError)
    assert "free some space" in full.hint
    named = unwritable("x", OSError(errno.EACCES, "Permission denied"), "another --out")
    assert type(named) is OutputError
    assert named.hint == "another --out"


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "", "nan"])
def test_an_option_that_counts_takes_whole_numbers_only(text: str) -> None:
    top = Parser(prog="tool")
    top.add_argument("--runs", type=whole_from(1))
    assert top.parse_args(["--runs", "1"]).runs == 1
    with pytest.raises(SettingsError, match="is not a whole number from 1 on"):
        top.parse_args([f"--runs={text}"])


def test_an_option_that_counts_has_an_end() -> None:
    top = Parser(prog="tool")
    top.add_argument("--runs", type=whole_from(1, 3))
    assert top.parse_args(["--runs", "3"]).runs == 3
    with pytest.raises(SettingsError, match="'4' is not a whole number from 1 to 3"):
        top.parse_args(["--runs=4"])


def test_help_with_many_options_begins_with_what_is_needed() -> None:
    parser = Parser(prog="farm", formatter_class=HelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--few")
    assert parser.format_usage() == "usage: farm [-h] --cluster CLUSTER [--few FEW] model\n"
    for number in range(20):
        parser.add_argument(f"--option{number}")
    assert parser.format_usage() == "usage: farm [options] --cluster CLUSTER model\n"
    assert "--option19" in parser.format_help()


def test_long_names_of_subcommands_have_room_in_their_column() -> None:
    parser = Parser(prog="farm", formatter_class=HelpFormatter)
    parser.add_subparsers(metavar="WHAT").add_parser("conformance", help="all of it")
    assert "    conformance  all of it\n" in parser.format_help()
