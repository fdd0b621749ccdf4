"""Hooks: small real commands, the bitstream that is programmed once, files that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, SettingsError

from device_server.device.bitstream import Bitstream, ensure_programmed, forget_programmed
from device_server.device.hook import Hook
from device_server.device.hooks import load_hooks

BITS = b"bits of a board"
DIGEST = Digest.of(BITS).hex


def sh(script: str, seconds: float = 60.0) -> Hook:
    return Hook(name="test", command=("/bin/sh", "-c", script), seconds=seconds)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A folder that plays a board: programming appends a line to `log` and fills `running`."""
    (tmp_path / "vta.bit").write_bytes(BITS)
    return tmp_path


def bitstream(board: Path, *, report: str = "") -> Bitstream:
    script = f"echo {{digest}} >> {board}/log; sha256sum < {{file}} | cut -c1-64 > {board}/running"
    return Bitstream(
        file=board / "vta.bit", program=sh(script), report=sh(report) if report else None
    )


def programmed(board: Path) -> int:
    return len((board / "log").read_text().splitlines()) if (board / "log").exists() else 0


def test_a_hook_gives_what_it_prints_with_its_words() -> None:
    hook = Hook(name="test", command=("/bin/echo", "{file}", "$(id)"))
    assert hook.run({"file": "a b"}) == "a b $(id)\n"


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (sh("echo no relay >&2; exit 3"), r"ends with status 3; it says: no relay"),
        (sh("kill -9 $$"), r"ends with signal 9"),
        (sh("sleep 60 & sleep 60", 0.2), r"takes longer than 0\.2 s"),
        (Hook(name="test", command=("/no/such/relay",)), "cannot be run: No such file"),
    ],
)
def test_a_hook_that_fails_says_how(hook: Hook, why: str) -> None:
    with pytest.raises(InfraError, match=rf"the hook test \({hook.command[0]}\) {why}") as failure:
        hook.run()
    assert failure.value.hint


def test_a_bitstream_is_programmed_once_a_boot(board: Path) -> None:
    state = board / "programmed"
    assert ensure_programmed(bitstream(board), state, boot_id="1")
    assert not ensure_programmed(bitstream(board), state, boot_id="1")
    assert ensure_programmed(bitstream(board), state, boot_id="2")
    forget_programmed(state)
    assert ensure_programmed(bitstream(board), state, boot_id="2")
    assert programmed(board) == 3
    assert (board / "running").read_text().strip() == DIGEST


def test_another_bitstream_is_programmed(board: Path) -> None:
    state = board / "programmed"
    ensure_programmed(bitstream(board), state, boot_id="1")
    (board / "vta.bit").write_bytes(b"others")
    assert ensure_programmed(bitstream(board), state, boot_id="1")
    assert (board / "log").read_text().splitlines() == [DIGEST, Digest.of(b"others").hex]


def test_what_the_board_reports_is_believed_more_than_what_is_remembered(board: Path) -> None:
    state, asked = board / "programmed", f"cat {board}/running"
    (board / "running").write_text("something else")
    assert ensure_programmed(bitstream(board, report=asked), state, boot_id="1")
    assert not ensure_programmed(bitstream(board, report=asked), state, boot_id="2")
    (board / "running").write_text("something else")
    assert ensure_programmed(bitstream(board, report=asked), state, boot_id="2")


def test_a_board_that_reports_something_else_afterwards_is_told(board: Path) -> None:
    with pytest.raises(InfraError, match="reports bitstream 'never' after it was programmed"):
        ensure_programmed(bitstream(board, report="echo never"), board / "state", boot_id="1")


def test_programming_that_fails_is_done_again(board: Path) -> None:
    state = board / "programmed"
    failing = Bitstream(file=board / "vta.bit", program=sh("exit 1"))
    for _ in range(2):
        with pytest.raises(InfraError, match="ends with status 1"):
            ensure_programmed(failing, state, boot_id="1")


def test_a_bitstream_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=r"cannot read the bitstream .*vta\.bit: No such file"):
        ensure_programmed(bitstream(tmp_path), tmp_path / "state", boot_id="1")


SECTIONS = {
    "power_cycle": {"command": ["relay", "cycle"], "seconds": 30},
    "bitstream": {"file": "vta.bit", "command": ["program", "{file}"], "report": ["which"]},
}
TOML = """
[power_cycle]
command = ["relay", "cycle"]
seconds = 30
[bitstream]
file = "vta.bit"
command = ["program", "{file}"]
report = ["which"]
"""


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "hooks.toml").write_text(TOML)
    (tmp_path / "hooks.json").write_text(json.dumps(SECTIONS))
    hooks = load_hooks(tmp_path / "hooks.toml")
    assert hooks == load_hooks(tmp_path / "hooks.json")
    assert hooks.power_cycle == Hook(name="power_cycle", command=("relay", "cycle"), seconds=30.0)
    assert hooks.bitstream is not None
    assert hooks.bitstream.file == tmp_path / "vta.bit"


def test_every_reason_against_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    path.write_text(
        json.dumps(
            {
                "power_cycle": {"command": "relay cycle", "seconds": -1},
                "bitstream": {"command": [], "twice": 1},
                "reboot": {},
            }
        )
    )
    with pytest.raises(SettingsError) as refused:
        load_hooks(path)
    assert refused.value.what.removeprefix(f"{path}: ").split("; ") == [
        "reboot: no such hook",
        "bitstream.twice: unknown key",
        "power_cycle.command: not a list of arguments",
        "power_cycle.seconds: -1 is not within 0..3600",
        "bitstream.file: missing, or not a text",
        "bitstream.command: not a list of arguments",
    ]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("hooks.toml", "[", "hooks.toml: "),
        ("hooks.json", "{", "hooks.json: "),
        ("hooks.json", "[1]", "hooks.json: not an object"),
        ("hooks.json", '{"bitstream": 1}', "bitstream: not a section"),
    ],
)
def test_what_is_no_hooks_file_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SettingsError, match=why):
        load_hooks(tmp_path / name)


def test_a_hooks_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*none\.toml: No such file"):
        load_hooks(tmp_path / "none.toml")
