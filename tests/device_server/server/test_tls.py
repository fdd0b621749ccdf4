"""A farm with certificates: it works, rotates without a restart, says what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server, eventually
from kit.farm.parties import Parties
from kit.farm.proxy import Proxy
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import (
    AccessError,
    CertificateError,
    ForbiddenError,
    SettingsError,
    TilefarmError,
    UnreachableError,
)
from tilefarm.measurement import Measurement, RunJob
from tilefarm.rpc.security import security
from tilefarm.target import TARGETS
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials, TlsFolder
from tilefarm.trust.tokens import TokenEntry, table_text
from tilefarm.watch.audit import read_audit

from device_server.device.client import DeviceClient
from device_server.device.settings import DeviceSettings
from device_server.tracker.client import TrackerClient

CODE = Elf().build()


@dataclass(frozen=True, slots=True)
class Place:
    """A tracker with TLS on loopback, and the certificates of a user."""

    farm: Farm
    parties: Parties
    tracker: Server
    ann: Credentials


@pytest.fixture
def place(farm: Farm, tmp_path: Path) -> Place:
    parties = Parties(tmp_path / "pki")
    hub = parties.issue(FarmRole.TRACKER, "hub")
    farm.security = parties.security(hub, tmp_path / "tracker.jsonl")
    ann = parties.credentials(parties.issue(FarmRole.SUBMIT, "ann", hosts=()))
    return Place(farm, parties, farm.tracker(), ann)


def device(place: Place, name: str = "sim0") -> Server:
    folder = place.parties.issue(FarmRole.DEVICE, name)
    place.farm.security = place.parties.security(folder, place.farm.folder / "device.jsonl")
    place.farm.credentials = place.parties.credentials(folder)
    return place.farm.device(name, tracker=place.tracker)


def refused(place: Place, who: Credentials, kind: type[TilefarmError] = CertificateError) -> str:
    """What a call of somebody is answered, with what to try."""
    with TrackerClient(place.tracker.address, who) as client, pytest.raises(kind) as error:
        client.devices()
    assert error.value.hint
    return str(error.value)


def answer(place: Place, who: Credentials) -> str:
    """What a call of somebody is answered on a connection of its own; empty if all is well."""
    with TrackerClient(place.tracker.address, who) as client:
        try:
            client.devices()
        except CertificateError as error:
            return str(error)
    return ""


def test_a_revoked_certificate_is_refused_on_a_connection_that_is_open(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "revoked.json"
    place.parties.issue(FarmRole.SUBMIT, "eve", hosts=())
    place.parties.revoke("eve", file)
    hub = place.parties.issue(FarmRole.TRACKER, "hub2")
    place.farm.security = place.parties.security(hub, tmp_path / "hub2.jsonl", file)
    tracker = place.farm.tracker()
    with TrackerClient(tracker.address, place.ann) as client:
        client.devices()
        place.parties.revoke("ann", file)
        with pytest.raises(CertificateError, match=r"of ann \(submit\) was revoked") as refused:
            client.devices()
    assert "tilefarm pki issue" in refused.value.hint
    ann = place.parties.credentials(place.parties.issue(FarmRole.SUBMIT, "ann", hosts=()))
    with TrackerClient(tracker.address, ann) as client:
        client.devices()
    assert [entry.why for entry in read_audit(tmp_path / "hub2.jsonl")] == [refused.value.what]


def test_a_device_with_a_revoked_certificate_gives_up(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "revoked.json"
    folder = place.parties.issue(FarmRole.DEVICE, "sim0")
    place.parties.revoke("sim0", file)
    hub = place.parties.issue(FarmRole.TRACKER, "hub2")
    place.farm.security = place.parties.security(hub, revoked=file)
    tracker = place.farm.tracker()
    place.farm.credentials = place.parties.credentials(folder)
    error = place.farm.device("sim0", tracker=tracker).ended_with(60)
    assert isinstance(error, CertificateError)
    assert "sim0 (device) was revoked" in error.what


def test_a_job_runs_and_the_audit_says_whose_it_was(place: Place) -> None:
    device(place)
    with TrackerClient(place.tracker.address, place.ann) as client:
        lease = client.acquire(place.farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, place.ann) as leased:
            leased.ensure({Digest.of(CODE): CODE})
            job = RunJob(artifact=Digest.of(CODE), entry="echo", buffers=())
            assert isinstance(leased.run(job, request_id="r"), Measurement)
        client.release(lease)
    (ran,) = [e for e in read_audit(place.farm.folder / "device.jsonl") if e.method == "Run"]
    assert (ran.user, ran.roles, ran.allowed) == ("ann", "submit", True)
    assert ran.subject == f"{Digest.of(CODE).hex} under {lease.lease_id}"
    noted = list(read_audit(place.farm.folder / "tracker.jsonl"))
    assert [(e.user, e.method) for e in noted] == [
        *(("sim0", "Register"), ("ann", "Acquire"), ("ann", "Release"))
    ]
    assert noted[1].subject == f"sim0 under {lease.lease_id}"


def test_a_server_that_takes_seconds_to_greet_is_waited_for(place: Place) -> None:
    """As on a machine with more to do than it can: a greeting that is cut short begins again."""
    with Proxy(place.tracker.address) as slow:
        slow.hesitate(2.0)
        with TrackerClient(slow.address, place.ann) as client:
            assert client.devices() == []


def test_a_role_is_that_of_the_certificate(place: Place) -> None:
    bob = place.parties.credentials(place.parties.issue(FarmRole.READ, "bob", hosts=()))
    with TrackerClient(place.tracker.address, bob) as client:
        assert client.devices() == []
        with pytest.raises(ForbiddenError, match=r"Acquire is for the role submit, not for bob"):
            client.acquire(place.farm.target.digest, wait_seconds=0.0, owner="bob")


def test_a_device_speaks_of_itself_only(place: Place) -> None:
    folder = place.parties.issue(FarmRole.DEVICE, "sim0")
    place.farm.security = place.parties.security(folder)
    place.farm.credentials = place.parties.credentials(folder)
    error = place.farm.device("sim1", tracker=place.tracker).ended_with(60)
    assert isinstance(error, ForbiddenError)
    assert "sim0 (device) is not the device sim1" in error.what
    assert "--name" in error.hint


def test_certificates_are_rotated_without_a_restart(place: Place) -> None:
    hub = place.parties.folder / "hub"
    with TrackerClient(place.tracker.address, place.ann) as early:
        early.devices()
        place.parties.issue(FarmRole.TRACKER, "hub", age_days=2.0)
        eventually(lambda: "its certificate has expired" in answer(place, place.ann))
        assert "tilefarm pki rotate" in refused(place, place.ann)
        assert early.devices() == []
    place.parties.issue(FarmRole.TRACKER, "hub", out=hub)
    eventually(lambda: answer(place, place.ann) == "")


def test_on_a_unix_socket_a_server_is_localhost(place: Place) -> None:
    hosts = ("127.0.0.1", "localhost")
    hub = place.parties.issue(FarmRole.TRACKER, "near", hosts=hosts)
    place.farm.security = place.parties.security(hub)
    tracker = place.farm.tracker(listen=f"unix:{place.farm.folder}/t.sock")
    with TrackerClient(tracker.address, place.ann) as client:
        assert client.devices() == []


@pytest.mark.parametrize("content", [b"-----BEGIN PRIVATE KEY-----\nAA==\n", None])
def test_a_folder_that_is_being_replaced_stops_nobody(content: bytes | None, place: Place) -> None:
    hub = place.parties.folder / "hub"
    other = place.parties.issue(FarmRole.TRACKER, "other") / "identity.pem"
    key, begin, _ = other.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    _, _, certificate = (hub / "identity.pem").read_bytes().partition(begin)
    torn = key + begin + certificate if content is None else content + begin + b"nonsense"
    (hub / "identity.pem").write_bytes(torn)
    eventually(lambda: "certificates_fail" in [event for event, _ in place.farm.events])
    assert answer(place, place.ann) == ""
    (hub / "identity.pem").write_bytes(b"")
    place.parties.issue(FarmRole.TRACKER, "hub", out=hub)
    eventually(lambda: "certificates" in [event for event, _ in place.farm.events])
    assert answer(place, place.ann) == ""


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        (
            lambda parties: parties.issue(FarmRole.TRACKER, "hub", hosts=("10.1.2.3", "hub.lab")),
            "for other host names",
        ),
        (lambda parties: parties.issue(FarmRole.SUBMIT, "hub"), "not that of a server"),
        (lambda parties: parties.issue(FarmRole.TRACKER, "hub", age_days=-1.0), "not valid yet"),
        (
            lambda parties: Parties(parties.folder / "other").issue(
                FarmRole.TRACKER, "hub", out=parties.folder / "hub"
            ),
            "not issued by the farm",
        ),
    ],
)
def test_a_server_with_a_wrong_certificate_is_not_believed(
    place: Place, break_it: Callable[[Parties], Path], reason: str
) -> None:
    break_it(place.parties)
    eventually(lambda: reason in answer(place, place.ann))


def test_a_client_without_a_good_certificate_gets_nothing(place: Place) -> None:
    stranger = Parties(place.farm.folder / "elsewhere").issue(FarmRole.SUBMIT, "ann", hosts=())
    (stranger / "ca.pem").write_bytes((place.parties.folder / "hub" / "ca.pem").read_bytes())
    expired = place.parties.issue(FarmRole.SUBMIT, "eve", hosts=(), age_days=2.0)
    for who in (
        CREDENTIALS,
        place.parties.credentials(stranger),
        place.parties.credentials(expired),
    ):
        told = refused(place, who, UnreachableError)
        assert "closes the connection before a call" in told
        assert "--tls" in told


def test_a_server_without_tls_is_told_apart(place: Place) -> None:
    place.farm.security = security(TOKEN, None, tls=None, audit=None)
    plain = place.farm.tracker()
    with (
        TrackerClient(plain.address, place.ann) as client,
        pytest.raises(CertificateError, match="does not speak TLS"),
    ):
        client.devices()


def test_with_a_table_a_stolen_token_alone_is_worth_nothing(place: Place, tmp_path: Path) -> None:
    table = tmp_path / "tokens.json"
    rows = [("ann", "of-ann"), ("bob", "of-bob")]
    table.write_text(
        table_text(
            tuple(
                TokenEntry(hash=Digest.of(token.encode()), user=user, role=FarmRole.SUBMIT)
                for user, token in rows
            )
        )
    )
    place.farm.security = security(None, table, tls=place.parties.folder / "hub", audit=None)
    tracker = place.farm.tracker()
    for token, kind in (("of-ann", None), ("of-bob", AccessError), (TOKEN, AccessError)):
        who = Credentials(token=token, tls=place.ann.tls)
        with TrackerClient(tracker.address, who) as client:
            if kind is None:
                assert client.devices() == []
            else:
                with pytest.raises(kind):
                    client.devices()


def test_off_loopback_a_server_starts_with_tls_only(place: Place) -> None:
    assert place.farm.tracker(listen="0.0.0.0:0").address.startswith("0.0.0.0:")
    place.farm.security = security(TOKEN, None, tls=None, audit=None)
    with pytest.raises(SettingsError, match="without TLS") as refused_to_start:
        place.farm.tracker(listen="0.0.0.0:0")
    assert "tilefarm pki issue --host 0.0.0.0" in refused_to_start.value.hint


@pytest.mark.parametrize(
    ("tracker", "listen"),
    [("127.0.0.1:9190", "0.0.0.0:9191"), ("10.0.0.1:9190", "127.0.0.1:0")],
)
def test_a_device_registers_an_address_that_others_can_reach(
    tracker: str, listen: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="is no address under which those at") as told:
        DeviceSettings(
            name="sim0", target=TARGETS["sim"], folder=tmp_path, tracker=tracker, listen=listen
        )
    assert "10.0.0.2:9191" in told.value.hint


@pytest.mark.parametrize("spoil", ["absent", "readable", "half"])
def test_certificates_that_cannot_be_used_are_refused(place: Place, spoil: str) -> None:
    folder = place.parties.folder / "ann"
    identity = folder / "identity.pem"
    reason = {
        "absent": "cannot read identity.pem",
        "readable": "others can read the key",
        "half": "does not hold a key and its certificate",
    }[spoil]
    match spoil:
        case "absent":
            identity.unlink()
        case "readable":
            identity.chmod(0o644)
        case "half":
            identity.write_bytes(identity.read_bytes()[:200])
    with pytest.raises(SettingsError, match=reason) as told:
        TlsFolder(folder).read()
    assert told.value.hint
