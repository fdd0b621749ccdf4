"""The servers' own command line: the options of `tilefarm device` and `tilefarm tracker`."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from device_server.__main__ import main
from driver.commands import COMMANDS


def test_it_has_the_servers_of_the_whole_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for server in ("device", "tracker"):
        with pytest.raises(SystemExit):
            main([server, "--help"])
        assert f"tilefarm {server} " in capsys.readouterr().out
        assert COMMANDS[server][0] == f"device_server.{server}.command"


@pytest.mark.parametrize(
    ("words", "told", "hint"),
    [
        ([], "arguments are required: SERVER", "--help"),
        (["device", "--name", "a"], "a device needs --name and --tracker", "try: --name"),
        (["tracker"], "a server needs --token-file or --tokens", "--token-file farm.token"),
        (["tracker", "--listen", "nowhere"], "a server needs", "--token-file"),
        (["device", "--name", "a", "--tracker", "h:1"], "needs --token-file", "tracker wrote"),
        (["device", "--label", "x"], "'x' is not KEY=VALUE", "--help"),
        (["device", "--runtime-env", "x"], "'x' is not NAME=VALUE", "--help"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_a_hint(
    words: list[str], told: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    what, remedy = capsys.readouterr().err.strip().splitlines()
    assert what.startswith("tilefarm-")
    assert told in what
    assert remedy.startswith("  try: ")
    assert hint in remedy


def test_a_folder_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Path] = []
    monkeypatch.setattr(
        "device_server.device.process.serve", lambda **o: served.append(o["folder"])
    )
    monkeypatch.chdir(tmp_path)
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    words = ["--name", "a", "--tracker", "127.0.0.1:1", "--token-file", "token"]
    assert main(["device", *words, "--folder", "uploads"]) == 0
    assert served == [tmp_path / "uploads"]


def test_a_fault_of_ours_is_told_with_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: argparse.Namespace) -> int:
        raise AssertionError("a bug")

    monkeypatch.setattr("device_server.tracker.command.run", broken)
    assert main(["tracker"]) == 70
    what, remedy = capsys.readouterr().err.strip().splitlines()
    assert what == "tilefarm-tracker: internal error: AssertionError: a bug"
    log = Path(remedy.split()[2].rstrip(","))
    assert "AssertionError: a bug" in log.read_text()
    log.unlink()
