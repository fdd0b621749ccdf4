"""The doctor of a farm: what it finds when all is well, and each fault with its repair."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server, eventually
from kit.farm.parties import DAY_SECONDS, Parties
from kit.manual_clock import ManualClock
from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import UnreachableError
from tilefarm.lease import DeviceInfo
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.security import Security
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials
from tilefarm.trust.tokens import TokenEntry, TokenTable, table_text

from device_server.tracker.client import TrackerClient
from driver import cli
from driver.doctor import DoctorFinding
from driver.farm.farm_check import FarmAddress, examine_farm


class SkewedClock(SystemClock):
    """This machine's clock, an hour slow."""

    def wall_seconds(self) -> float:
        return super().wall_seconds() - 3600


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def tracker(farm: Farm) -> Server:
    tracker = farm.tracker()
    farm.device("sim0", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: bool(client.devices()))
    return tracker


def found(
    address: str, credentials: Credentials = CREDENTIALS, clock: Clock | None = None
) -> dict[str, DoctorFinding]:
    farm = FarmAddress(tracker=address, credentials=credentials, options="--tracker T")
    return {finding.subject: finding for finding in examine_farm(farm, clock or SystemClock())}


def test_a_farm_that_is_well(tracker: Server) -> None:
    findings = found(tracker.address)
    assert [*findings] == ["tracker", "token", "clock", "sim0"]
    assert all(finding.good for finding in findings.values())
    assert "submit" in findings["token"].detail
    assert findings["sim0"].detail == "free; sandbox none"


def test_a_tracker_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (finding,) = found(f"127.0.0.1:{port}").values()
    assert not finding.good
    assert "nobody listens there" in finding.detail
    assert finding.repair == "start it, or check its address"


def test_a_token_that_is_none_of_the_farms(tracker: Server) -> None:
    (finding,) = found(tracker.address, Credentials(token="wrong")).values()
    assert (finding.subject, finding.good) == ("tracker", False)
    assert "none of this farm" in finding.detail


def test_a_token_that_may_only_look(farm: Farm) -> None:
    table = farm.folder / "tokens.json"
    hashed = Digest.of(b"looker")
    entry = TokenEntry(hash=hashed, user="ann", role=FarmRole.READ, expires_at=None)
    table.write_text(table_text((entry,)))
    farm.security = Security(tokens=TokenTable(table, SystemClock()))
    findings = found(farm.tracker().address, Credentials(token="looker"))
    assert (findings["token"].good, findings["token"].detail) == (False, "we are ann (read)")
    assert "tilefarm pki token --role submit" in findings["token"].repair


def test_clocks_that_are_apart(tracker: Server) -> None:
    clock = found(tracker.address, clock=SkewedClock())["clock"]
    assert not clock.good
    assert "the tracker's is 3" in clock.detail
    assert "ahead of ours" in clock.detail
    assert "timedatectl" in clock.repair


def test_a_farm_without_devices(farm: Farm) -> None:
    devices = found(farm.tracker().address)["devices"]
    assert (devices.good, devices.detail) == (False, "none is registered")
    assert devices.repair == "tilefarm device --name NAME --tracker T"


def test_a_device_that_is_out_of_service(tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.drain("sim0", "new power supply")
    device = found(tracker.address)["sim0"]
    assert (device.good, device.detail) == (False, "drained: new power supply; free")
    assert device.repair == "tilefarm devices --tracker T --readmit sim0"


def test_a_device_that_only_the_tracker_reaches(farm: Farm) -> None:
    tracker = farm.tracker()
    gone = DeviceInfo(
        name="sim9",
        address="127.0.0.1:1",
        target=farm.target.digest,
        runtime="r",
        sandbox="none",
        epoch="e1",
    )
    caller = Caller(tracker.address, CREDENTIALS, peer="tracker", lost=UnreachableError)
    caller.unary(
        methods.REGISTER, tracker_calls.Register(device=gone, secret=b"s" * 32), timeout_seconds=60
    )
    caller.close()
    finding = found(tracker.address)["sim9"]
    assert not finding.good
    assert "does not answer" in finding.detail


@pytest.mark.parametrize(
    ("age_days", "good", "detail"),
    [(0.0, False, "good for 1 days"), (2.0, False, "has expired")],
)
def test_a_certificate_that_ends_soon(
    age_days: float, good: bool, detail: str, tmp_path: Path
) -> None:
    parties = Parties(tmp_path / "pki")
    folder = parties.issue(FarmRole.SUBMIT, "ann", age_days=age_days)
    finding = found("127.0.0.1:9", parties.credentials(folder))["certificate"]
    assert finding.good is good
    assert detail in finding.detail
    assert finding.repair == f"tilefarm pki rotate AUTHORITY {folder}"


def test_a_certificate_that_lasts(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "pki")
    folder = parties.issue(FarmRole.SUBMIT, "ann")
    early = ManualClock(SystemClock().wall_seconds() - 30 * DAY_SECONDS)
    assert found("127.0.0.1:9", parties.credentials(folder), early)["certificate"].good


def test_the_command_prints_findings_and_their_repairs(
    tracker: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "farm.token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    words = ["doctor", "--tracker", tracker.address, "--token-file", str(token)]
    assert cli.main(words) == 0
    assert "ok   sim0         free; sandbox none" in capsys.readouterr().out
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.drain("sim0", "repair")
    assert cli.main(words) == 2
    options = f"--tracker {tracker.address} --token-file {token}"
    assert f"try: tilefarm devices {options} --readmit sim0" in capsys.readouterr().out
    assert cli.main([*words, "--json"]) == 2
    rows = json.loads(capsys.readouterr().out)
    assert {row["subject"] for row in rows if not row["good"]} == {"sim0"}
    assert {row["subject"] for row in rows if row["repair"]} == {"sim0"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--token-file", "t"], "--token-file is for a farm"),
        (["--tls", "t"], "--tls is for a farm"),
        (["--tracker", "127.0.0.1:1"], "doctor --tracker needs --token-file"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", *words]) == 2
    assert reason in capsys.readouterr().err
