"""Words of others move no cursor, turn no text round, begin no line and fill no screen."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import grpc
import pytest
from kit.farm.in_process import TOKEN
from kit.farm.ray_dashboard import CLUSTER_TOKEN, RayDashboard
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError
from tilefarm.lease import DeviceInfo
from tilefarm.printable import MOST_SHOWN, page_text, printable, printable_lines, printable_words
from tilefarm.rpc.status import error_from
from tilefarm.rpc.tracker_calls import Devices, DeviceState, RefusedRun, Waiting
from tilefarm.watch.audit import AuditEntry, AuditFile
from tilefarm.watch.log import LineLog

from device_server.tracker.client import TrackerClient
from driver import cli
from driver.doctor import DoctorFinding
from driver.jobs import shipping
from driver.jobs.responses import RayJob
from driver.report.terminal.views import view_for
from driver.run_events import DeviceJoined, DeviceLeft, Notice, SearchBegan, StepEnded

HOSTILE: Final = (
    "\x1b[2Jgone",  # clears the screen
    "\x1b]0;title\x07",  # names the window
    "\u202egnihtyna\u2066",  # reads from right to left
    "two\nlines\r\x0b\x0c\x85\u2028more",
    "\x9b31mred",  # the same as ESC [ in one byte
    "[blink]markup[/blink]",
    "x" * 10_000,
)


def assert_harmless(shown: str, *, most: int = 3000) -> None:
    assert shown, "there is something to look at"
    for line in shown.split("\n"):
        assert line.replace("\t", "").isprintable(), ascii(line)
        assert len(line) < most


@pytest.mark.parametrize("words", HOSTILE)
def test_what_is_printable_is_one_line(words: str) -> None:
    shown = printable(words)
    assert_harmless(shown, most=10 * MOST_SHOWN)
    assert "\n" not in shown
    assert printable(shown) == shown, "twice is once"


def test_what_is_harmless_stays_as_it_is() -> None:
    assert printable("naïve 名前 🙂 \\x1b") == "naïve 名前 🙂 \\x1b"
    assert printable("\x1b[2J\u202e\n\udcff") == r"\x1b[2J\u202e\n\udcff"
    assert printable_lines("12\u202f345 cycles") == "12\u202f345 cycles", "a number of ours"
    assert printable_lines("a\n\tb\x1b[31m!\x1b[0m\x1b[2J") == "a\n\tb!\\x1b[2J"
    assert page_text("<b>\u202e\n") == "&lt;b&gt;\\u202e\n"


def test_words_within_records_are_looked_at_too() -> None:
    labels = (("key\n", "value\x1b"),)
    info = replace(info_of("name\x07"), labels=labels)
    shown = printable_words((info,))
    assert shown[0].labels == ((r"key\n", r"value\x1b"),)
    assert shown[0].target == info.target


def info_of(words: str) -> DeviceInfo:
    return DeviceInfo(
        name=words,
        address=words,
        target=Digest.of(b"target"),
        runtime=words,
        sandbox=words,
        epoch=words,
        labels=((words, words),),
        self_test=words,
    )


def state(words: str) -> DeviceState:
    device = info_of(words)
    return DeviceState(device=device, owner=words, user=words, leased_seconds=1.0, refused=1)


@pytest.fixture(params=HOSTILE, ids=ascii)
def words(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def farm(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options of a farm whose tracker lies about everything."""
    states = (
        state(words),
        replace(state(words), draining=words),
        replace(state(words), quarantine=words),
        replace(state(words), resting=words, owner=""),
    )
    waiting = (Waiting(owner=words, user=words, priority=0, waited_seconds=1.0),)
    refused = RefusedRun(
        artifact=Digest.of(b"a"), entry=words, crashes=2, status=words, why=words, refused_seconds=1
    )
    monkeypatch.setattr(
        TrackerClient, "overview", lambda _: Devices(states=states, waiting=waiting)
    )
    monkeypatch.setattr(TrackerClient, "refused_runs", lambda *_: (refused,))
    token = tmp_path / "farm.token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return ["--tracker", "127.0.0.1:1", "--token-file", str(token)]


@pytest.mark.parametrize(
    "command", [["devices"], ["devices", "--refused"], ["top", "--once"]], ids=" ".join
)
def test_commands_about_a_farm(
    command: list[str], farm: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, *farm]) == 0
    assert_harmless(capsys.readouterr().out)


def test_a_doctor(
    words: str,
    farm: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [DoctorFinding(subject=words, good=False, detail=words, repair=words)]
    monkeypatch.setattr("driver.commands.doctor.findings_of", lambda _: found)
    assert cli.main(["doctor", *farm]) == 2
    assert_harmless(capsys.readouterr().out)


def test_an_audit(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.jsonl"
    audit = AuditFile(path, LineLog("test", io.StringIO()))
    for allowed in (True, False):
        audit(
            AuditEntry(
                at_seconds=0.0,
                user=words if allowed else "",
                roles=words,
                peer=words,
                method=words,
                allowed=allowed,
                subject=words,
                why=words,
            )
        )
    assert cli.main(["devices", "--audit", str(path)]) == 0
    assert_harmless(capsys.readouterr().out)


@pytest.mark.parametrize("command", ["devices", "top"])
def test_an_error_of_a_server(
    command: str,
    words: str,
    farm: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: object) -> None:
        raise DeviceLostError(words[:1000], words[:1000])

    monkeypatch.setattr(TrackerClient, "overview", fail)
    assert cli.main([command, *farm]) == 70
    assert_harmless(capsys.readouterr().err)


def test_an_error_that_comes_over_the_network_is_one_line(words: str) -> None:
    class Failure(Exception):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.UNAVAILABLE

        def details(self) -> str:
            return words

        def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
            return (("tilefarm-error", "DeviceLostError"), ("tilefarm-hint-bin", words.encode()))

    error = error_from(Failure(), peer="device", lost=DeviceLostError)
    assert_harmless(error.what)
    assert_harmless(error.hint)
    assert "\n" not in error.what


def test_jobs_and_what_they_print(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "ray.token"
    token.write_text(CLUSTER_TOKEN)
    token.chmod(0o600)
    folder = tmp_path / "cluster"
    folder.mkdir()
    job = RayJob(
        id=words,
        status=words,
        message=words,
        exit_code=1,
        began_seconds=1.0,
        ended_seconds=2.0,
        metadata={shipping.TITLE_KEY: words},
    )
    with RayDashboard(folder, sys.executable, runs=False) as dashboard:
        cluster = ["--cluster", dashboard.address, "--cluster-token", str(token)]
        monkeypatch.setattr("driver.jobs.dashboard.Dashboard.jobs", lambda _: [job])
        monkeypatch.setattr("driver.jobs.dashboard.Dashboard.log", lambda *_: f"line\n{words}\n")
        monkeypatch.setattr("driver.jobs.watching.stopped", lambda *_: job)
        monkeypatch.setattr("driver.jobs.watching.followed", lambda *_: iter([words]))
        monkeypatch.setattr("driver.jobs.dashboard.Dashboard.job", lambda *_: job)
        for command in (["jobs"], ["logs", "j"], ["logs", "j", "--follow"], ["cancel", "j"]):
            assert cli.main([*command, *cluster]) in (0, 1)
            assert_harmless(capsys.readouterr().out, most=20_000)


class Terminal(io.StringIO):
    """Takes what a terminal would."""

    def isatty(self) -> bool:
        return True


def test_what_a_run_says_as_it_goes_on(words: str) -> None:
    for terminal in (False, True):
        stream = Terminal() if terminal else io.StringIO()
        with view_for(stream, as_json=False) as view:
            for event in (
                StepEnded(step=words, seconds=0.0, detail=words),
                SearchBegan(workloads=((words, 1),), trials=1, done=0, seconds=0.0),
                DeviceJoined(device=words, sandbox=words, runtime=words, seconds=0.0),
                Notice(text=words, seconds=0.0),
                DeviceLeft(device=words, why=words, seconds=0.0),
            ):
                view(event)
        shown = stream.getvalue()
        assert words not in shown or words.isprintable()
        assert "\u202e" not in shown
        assert "\x1b[2Jgone" not in shown
        if not terminal:
            assert_harmless(shown)


def test_log_lines(words: str) -> None:
    stream = io.StringIO()
    LineLog("test", stream, clock=ManualClock())("event", device=words)
    assert_harmless(stream.getvalue().removesuffix("\n"), most=20_000)
    assert stream.getvalue().count("\n") == 1
