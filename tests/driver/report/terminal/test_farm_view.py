"""What `tilefarm top` draws, wide and narrow, of a small farm and of a large one."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from kit.golden import Golden
from rich.console import Console
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import DeviceClock
from tilefarm.rpc.tracker_calls import Devices, DeviceState, Usage, Waiting

from driver.report.terminal.farm_view import farm_view


def device(name: str, **use: Any) -> DeviceState:
    info = DeviceInfo(
        name=name,
        address="10.0.0.7:9191",
        target=Digest.of(b"target"),
        runtime="build",
        sandbox="seccomp",
        epoch="1",
        labels=(("board", "pynq"), ("site", "lab")),
    )
    return DeviceState(device=info, **use)


def did(runs: int, busy_seconds: float) -> Usage:
    return Usage(runs=runs, busy_seconds=busy_seconds, up_seconds=10.0)


FARM = Devices(
    states=(
        device(
            "board1", user="ann", owner="tune resnet18", leased_seconds=13.2, lately=did(91, 9.7)
        ),
        device(
            "board2",
            user="somebody-with-a-long-name",
            owner="tune a-network-whose-name-is-long-as-well",
            leased_seconds=7300.0,
            lately=did(123, 9.94),
        ),
        device("board3", lately=did(0, 0.0)),
        device("board4", quarantine="lost 3 times in a row; ann: no answer to Run"),
        device("old", user="ann", owner="run", leased_seconds=150.0),
    ),
    waiting=(
        Waiting(owner="tune resnet18", user="ann", priority=0, waited_seconds=2.0),
        Waiting(owner="tune mobilenet", user="eve", priority=-1, waited_seconds=340.0),
    ),
)


def drawn(farm: Devices, width: int, height: int | None = None) -> str:
    console = Console(width=width, height=height or 60, record=True, file=io.StringIO())
    console.print(farm_view(farm, width=width, height=height))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


@pytest.mark.parametrize("width", [60, 80, 140])
def test_view(golden: Golden, width: int) -> None:
    text = drawn(FARM, width)
    assert max(map(len, text.splitlines())) <= width
    for number in ("9.1", "97 %", "12.3", "99 %", "13 s", "2 h", "6 min", "-1"):
        assert number in text, "numbers are whole"
    golden(text, str(width))


def test_a_device_that_is_timed_by_the_clock_is_seen() -> None:
    state = device("board5")
    clocked = replace(state, device=replace(state.device, clock=DeviceClock.SECONDS))
    assert "board=pynq site=lab clock=seconds" in drawn(Devices(states=(clocked,), waiting=()), 140)
    assert "clock" not in drawn(Devices(states=(state,), waiting=()), 140)


def test_a_short_screen_shows_what_needs_somebody_and_what_works() -> None:
    idle = tuple(device(f"idle{n:03}", lately=did(0, 0.0)) for n in range(1000))
    farm = Devices(states=(*idle, *FARM.states), waiting=FARM.waiting)
    lines = drawn(farm, 80, 24).splitlines()
    assert len(lines) <= 24
    assert lines[0] == "1005 devices: 3 in use, 1 out of service; 2 waiting"
    names = [line.split()[0] for line in lines if line.startswith(("board", "old", "idle"))]
    assert names[:4] == ["board4", "board1", "board2", "old"]
    assert any(line.startswith("and ") and line.endswith("--once prints all") for line in lines)


def test_words_of_others_are_no_commands_to_a_terminal() -> None:
    text = drawn(Devices(states=(device("x", owner="[red]\x1b[2Jgone\x07"),)), 100)
    assert r"[red]\x1b[2Jgone\x07" in text


def test_a_farm_that_is_empty_is_said_to_be() -> None:
    assert drawn(Devices(states=()), 80).startswith("0 devices: 0 in use")
