"""`tilefarm devices`, `top` and a tuned run's leases, against a farm in the test's process."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, TOKEN, FakeRunner, Farm, Server, eventually
from kit.search.toy_spaces import timed
from rich.console import Console
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import NoDeviceError
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.power import PowerState
from tilefarm.rpc import tracker_calls
from tilefarm.watch.audit import AuditEntry, AuditFile

from device_server.device.quarantined import Crashing
from device_server.tracker.client import TrackerClient
from driver import cli
from driver.commands import top
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases
from driver.report.terminal.farm_view import farm_view


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "farm.token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return str(file)


@pytest.fixture
def tracker(farm: Farm) -> Server:
    """A tracker with the device sim0, which has a label."""
    tracker = farm.tracker()
    farm.device("sim0", tracker=tracker, settings=lambda s: replace(s, labels=(("board", "de10"),)))
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: bool(client.devices()))
    return tracker


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(list(words)) == 0
    return capsys.readouterr().out


def test_a_device_is_drained_seen_and_readmitted(
    tracker: Server, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = ("devices", "--tracker", tracker.address, "--token-file", token)
    assert "board=de10\n             free; self-test " in said(capsys, *devices)
    assert " sandbox=none (none) " in said(capsys, *devices)
    drained = said(capsys, *devices, "--drain", "sim0", "--why", "new power supply")
    assert "drained: new power supply; free" in drained
    (row,) = json.loads(said(capsys, *devices, "--json"))
    assert (row["name"], row["draining"]) == ("sim0", "new power supply")
    assert (row["sandbox"], row["sandbox_level"]) == ("none", "none")
    assert "free" in said(capsys, *devices, "--readmit", "sim0")
    assert cli.main([*devices, "--drain", "sim9"]) == 3
    assert "no device sim9" in capsys.readouterr().err


class Countless(FakeRunner):
    """A processor, which counts nothing."""

    def known(self, job: RunJob) -> Measurement | RunFailure:
        return Measurement(
            artifact=job.artifact, device="fake", counters=None, wall_time=timed(1e-5)
        )


def test_a_device_timed_by_its_host_s_clock_says_how_steady_that_is(
    farm: Farm, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = PowerState(on_battery=True, governors=("powersave",))
    monkeypatch.setattr("device_server.device.served_device.power_state", lambda: laptop)
    tracker = farm.tracker()
    farm.device("laptop", tracker=tracker, runner=Countless())
    farm.device("sim0", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: len(client.devices()) == 2)
    devices = ("devices", "--tracker", tracker.address, "--token-file", token)
    first, second = said(capsys, *devices).split("\nsim0 ")
    assert first.endswith("by the host's clock; on battery, frequency governor powersave")
    assert "governor" not in second
    shown = json.loads(said(capsys, *devices, "--json"))
    assert [row["known_seconds"] for row in shown] == [1e-5, 0.0]


def test_that_no_device_refuses_a_run_is_said_to_who_asks(
    farm: Farm, tracker: Server, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = ("devices", "--tracker", tracker.address, "--token-file", token)
    assert "refuses" not in said(capsys, *devices)
    *_, last = said(capsys, *devices, "--refused").splitlines()
    assert last == "no device refuses a run"
    (row,) = json.loads(said(capsys, *devices, "--refused", "--json"))
    assert row["refused_runs"] == []
    empty = ("devices", "--tracker", farm.tracker().address, "--token-file", token, "--refused")
    assert said(capsys, *empty) == "no device is registered\n"
    assert json.loads(said(capsys, *empty, "--json")) == []


def test_runs_that_a_device_refuses_are_counted_and_told(
    farm: Farm, tracker: Server, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = Digest.of(b"code")
    row = Crashing(
        artifact=artifact.hex,
        entry="kernel",
        crashes=2,
        status="run_crash",
        why="SIGSEGV",
        since=time.time() - 3600.0,
    )
    (farm.folder / "sim1").mkdir()
    (farm.folder / "sim1" / "quarantined.json").write_text(json.dumps({"call": asdict(row)}))
    farm.device("sim1", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: [state.refused for state in client.states()] == [0, 1])
    devices = ("devices", "--tracker", tracker.address, "--token-file", token)
    plain = said(capsys, *devices)
    assert plain.count("refuses") == 1
    assert "free; refuses 1 run; self-test " in plain
    assert "SIGSEGV" not in plain
    told = f"\n             {artifact.short} kernel: run_crash 2 times, refused for 60 min; SIGSEGV"
    refused = said(capsys, *devices, "--refused")
    assert told in refused
    assert "no device refuses" not in refused
    free, refusing = json.loads(said(capsys, *devices, "--json"))
    assert (free["refused"], free["refused_runs"]) == (0, [])
    (run,) = refusing["refused_runs"]
    assert (run["artifact"], run["crashes"], refusing["refused"]) == (asdict(artifact), 2, 1)
    assert "refuses" in said(capsys, "top", *devices[1:], "--once")
    assert "refuses" not in said(capsys, *devices, "--readmit", "sim1")


def test_top_says_who_uses_what(
    farm: Farm, tracker: Server, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.acquire(farm.target.digest, wait_seconds=60.0, owner="[bold]resnet8")
    top = ("top", "--tracker", tracker.address, "--token-file", token)
    text = said(capsys, *top, "--once")
    assert "1 device: 1 in use, 0 out of service; 0 waiting" in text
    assert "[bold]resnet8" in text
    document = json.loads(said(capsys, *top, "--json"))
    assert document["states"][0]["owner"] == "[bold]resnet8"
    assert document["waiting"] == []


def test_top_goes_on_until_ctrl_c(tracker: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=100)
    pauses: list[float] = []

    def sleep(_: SystemClock, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        top.watch(client, terminal, every_seconds=0.5)
    assert pauses == [0.5] * 3
    assert shown.getvalue().count("1 device: 0 in use") >= 2


def test_the_view_says_who_waits_and_what_is_out(farm: Farm, tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        (state,) = client.states()
    waiting = tracker_calls.Waiting(owner="resnet18", user="bob", priority=5, waited_seconds=12.4)
    sick = replace(state, quarantine="3 clients in a row lost it")
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(farm_view(tracker_calls.Devices(states=(sick,), waiting=(waiting,)), width=120))
    text = console.export_text()
    assert "1 device: 0 in use, 1 out of service; 1 waiting" in text
    assert "3 clients in a row lost it" in text
    assert "resnet18              bob          5   12 s" in text


@pytest.mark.parametrize("command", ["devices", "top"])
def test_without_a_tracker_the_code_is_3(
    command: str, farm: Farm, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = farm.tracker()
    gone.stop()
    assert cli.main([command, "--tracker", gone.address, "--token-file", token]) == 3
    error = capsys.readouterr().err
    assert f"tracker at {gone.address} does not answer: nobody listens there" in error
    assert "try: start it, or check its address" in error
    assert cli.main([command]) == 2
    error = capsys.readouterr().err
    assert f"{command} needs --tracker and --token-file" in error
    assert "try: --tracker HOST:PORT --token-file FILE" in error


def test_options_that_would_do_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices", "--why", "because"]) == 2
    assert "--why is the reason of a --drain" in capsys.readouterr().err
    assert cli.main(["devices", "--drain", "sim0", "--readmit", "sim0"]) == 2
    assert "--drain takes sim0 out of service, --readmit puts it back" in capsys.readouterr().err
    for beside in (["--refused"], ["--readmit", "sim0"], ["--token-file", "t"]):
        assert cli.main(["devices", "--audit", "a", *beside]) == 2
        assert f"so {beside[0]} does nothing beside it" in capsys.readouterr().err
    assert cli.main(["top", "--tracker", "h:1", "--token-file", "t", "--every", "0"]) == 2
    assert "--every 0: must be from 0.1 to 3600" in capsys.readouterr().err
    assert cli.main(["top", "--tracker", "h:1", "--token-file", "t", "--every", "inf"]) == 2
    assert "--every inf: must be from" in capsys.readouterr().err
    assert cli.main(["devices", "--readmit", ""]) == 2
    assert "'' is no name of a device" in capsys.readouterr().err


def test_a_host_that_is_not_there_is_told(token: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["devices", "--tracker", "nosuch.invalid:1", "--token-file", token]) == 3
    assert "its host name is unknown" in capsys.readouterr().err


def test_the_audit_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "audit.jsonl"
    audit = AuditFile(file, lambda event, **fields: None)
    entry = AuditEntry(
        at_seconds=0.0,
        user="ann",
        roles="submit",
        peer="ipv4:10.0.0.3:5000",
        method="Run",
        subject="abc under lease l1",
        allowed=True,
    )
    audit(entry)
    audit(replace(entry, user="", roles="", subject="", allowed=False, why="no token"))
    lines = said(capsys, "devices", "--audit", str(file)).splitlines()
    assert lines[0].split() == [
        *("1970-01-01", "00:00:00", "ann", "(submit)", "Run", "abc", "under", "lease", "l1")
    ]
    assert lines[1].endswith("ipv4:10.0.0.3:5000       Run          REFUSED: no token")
    assert json.loads(said(capsys, "devices", "--audit", str(file), "--json"))[0]["user"] == "ann"


def test_a_run_asks_for_labels_and_hears_why_there_is_no_device(
    farm: Farm, tracker: Server
) -> None:
    remote = RemoteFarm(tracker.address, CREDENTIALS)
    fitting = Leases(remote, farm.target, owner="a", labels=(("board", "de10"),))
    other = Leases(remote, farm.target, owner="b", labels=(("board", "pynq"),))
    strict = Leases(remote, farm.target, owner="c", labels=(("sandbox", "seccomp"),))
    lease = fitting.acquire(60.0)
    for leases in (other, strict):
        with pytest.raises(NoDeviceError, match="none with all of --label and --require-sandbox"):
            leases.acquire(0.1)
    fitting.release(lease)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.drain("sim0", "for repair")
    with pytest.raises(NoDeviceError, match="sim0 drained: for repair"):
        fitting.acquire(0.1)
    fitting.close()
    strict.close()
    other.close()


def test_output_to_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "driver.cli", "targets"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == 75
    assert ended.stderr == (
        "tilefarm targets: output: cannot be written: No space left on device\n"
        "  try: free some space; the same command then goes on\n"
    )
