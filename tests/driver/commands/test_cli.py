"""The command line says little and means it: help, one-line errors, exit codes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest
from tilefarm.rpc.version import PROTOCOL
from tilefarm.target import load_target

from driver import cli
from driver.commands import COMMANDS, targets


def run(*words: str) -> int:
    return cli.main(words)


def test_help_lists_every_command_and_imports_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--help")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"    {name}" in shown for name in COMMANDS)
    assert "tilefarm demo" in shown


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys, driver.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'onnx', 'grpc', 'ray', 'rich', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_teaches_by_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(command, "--help")
    assert f"tilefarm {command}" in capsys.readouterr().out.split("options:")[-1]


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert "COMMAND" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"tilefarm {version('tilefarm')}, protocol {PROTOCOL}\n"


DEVICE = ("device", "--name", "d", "--tracker", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("nosuch",), "nosuch"),
        (("targets", "--nosuch"), "--nosuch"),
        (("tune",), "MODEL.onnx"),
        (("tune", "a.onnx", "--calibrate", "b.npz", "--trials", "x"), "--trials"),
        (("tune", "a.onnx", "--calibrate", "b.npz", "--trials", "-1"), "--trials -1"),
        (("tune", "a.onnx", "--calibrate", "b.npz", "--devices", "0"), "--devices 0"),
        (("tune", "a.onnx", "--calibrate", "b.npz", "--tracker", "h:1"), "--token-file"),
        (("targets", "--show", "nosuch"), "unknown target 'nosuch'"),
        (("tracker", "--token-file", "/nosuch/folder/token"), "/nosuch/folder/token"),
        ((*DEVICE, "--token-file", "/nosuch"), "/nosuch"),
        ((*DEVICE, "--token-file", "t", "--threads", "0"), "--threads 0"),
        (DEVICE, "--token-file"),
        (("device", "--name", "d", "--token-file", "t"), "--tracker"),
        (("tracker", "--token-file", "t", "--tokens", "u"), "one secret for all"),
        (("tracker",), "--token-file or --tokens"),
    ],
)
def test_a_bad_word_is_one_line_and_what_to_try(
    words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == 2
    assert lines[0].startswith("tilefarm")
    assert reason in lines[0]
    assert lines[1].startswith("  try: ")


def test_what_is_unknown_points_to_the_commands_own_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("tune", "a.onnx", "--calibrate", "b.npz", "--frob", "3") == 2
    assert "--frob 3\n  try: `tilefarm tune --help`" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "code"), [("targets", 0), ("tune a --calibrate b --out c", 75)])
def test_a_reader_that_goes_away_ends_a_run_unfinished(words: str, code: int) -> None:
    command = words.split()[0]
    script = f"""
        import sys, driver.cli, driver.commands.{command} as command
        def run(args):
            for _ in range(100_000): print("more")
            return 0
        command.run = run
        sys.exit(driver.cli.main({words.split()!r}))
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == code
    process.stderr.close()


def test_a_closed_output_is_no_fault() -> None:
    words = [sys.executable, "-m", "driver.cli", "targets"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_targets_lists_and_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("targets") == 0
    assert "sim-de10" in capsys.readouterr().out
    assert run("targets", "--show", "sim") == 0
    file = tmp_path / "mine.json"
    file.write_text(capsys.readouterr().out)
    assert load_target(str(file)).digest == load_target("sim").digest


def test_a_bug_is_one_line_and_a_traceback_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(args: object) -> int:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(targets, "run", broken)
    assert run("targets") == 70
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert "RuntimeError: first line\n" in error
    log = Path(error.split("read ")[1].split(",")[0])
    assert "second line" in log.read_text()
    log.unlink()


def test_ctrl_c_outside_of_a_run_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(targets, "run", interrupted)
    assert run("targets") == 75
    assert capsys.readouterr().err == "tilefarm targets: interrupted\n"


def test_help_lists_the_proposers_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("driver.commands.tune.PROPOSERS", {"mine": "a:B", "guided": "c:D"})
    with pytest.raises(SystemExit):
        cli.main(["tune", "--help"])
    assert "mine, guided (default: guided)" in capsys.readouterr().out
