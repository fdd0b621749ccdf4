"""The farm's authority and tokens, by the commands that make, show, rotate and revoke them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.farm.parties import Parties
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import CertificateError, SettingsError
from tilefarm.rpc.security import security
from tilefarm.trust.access import CertificateName, FarmRole
from tilefarm.trust.credentials import credentials, read_token
from tilefarm.trust.revoked import RevokedCertificates, read_revoked
from tilefarm.trust.signing import Signatures
from tilefarm.trust.tls import TlsFolder
from tilefarm.trust.tokens import TokenTable, read_table
from tilefarm.trust.validity import require_current

from driver import cli
from driver.farm.authority import certificate_in
from driver.farm.signing import signer


class Pki:
    """`tilefarm pki` in a folder: what it printed, or its one error."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, *words: str) -> str:
        assert cli.main(["pki", *words]) == 0
        return self.capsys.readouterr().out

    def refused(self, *words: str) -> str:
        assert cli.main(["pki", *words]) == 2
        error = self.capsys.readouterr().err
        assert error.splitlines()[-1].startswith("  try: ")
        return error

    def at(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def pki(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pki:
    return Pki(tmp_path, capsys)


def issue(pki: Pki, *words: str) -> str:
    return pki("issue", pki.at("ca"), "--role", "tracker", "--name", "hub", *words)


def test_an_authority_issues_and_rotates(pki: Pki) -> None:
    pki("init", pki.at("ca"))
    said = issue(pki, "--host", "10.0.0.1", "--host", "hub.lab", "--out", pki.at("hub"))
    assert "hub (tracker) for hub.lab, 10.0.0.1, until" in said
    identity = pki.folder / "hub" / "identity.pem"
    before = identity.read_bytes()
    assert identity.stat().st_mode & 0o777 == 0o600
    assert "1.0 days" in pki("rotate", pki.at("ca"), pki.at("hub"), "--days", "1")
    assert identity.read_bytes() != before
    found = certificate_in(pki.folder / "hub")
    assert (found.holder.name, found.hosts) == ("hub", ("hub.lab", "10.0.0.1"))
    (row,) = json.loads(pki("show", "--json", pki.at("hub")))
    assert (row["role"], row["hosts"]) == ("tracker", ["hub.lab", "10.0.0.1"])


def test_keys_are_never_overwritten_by_a_second_init(pki: Pki) -> None:
    pki("init", pki.at("ca"))
    key = (pki.folder / "ca" / "ca.key").read_bytes()
    assert "File exists" in pki.refused("init", pki.at("ca"))
    assert (pki.folder / "ca" / "ca.key").read_bytes() == key


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--name", "a b"), "not a name"),
        (("--days", "0"), "not a time to live"),
        (("--host", "größer.lab"), "no host name"),
    ],
)
def test_what_no_certificate_can_say_is_refused(
    pki: Pki, words: tuple[str, ...], reason: str
) -> None:
    pki("init", pki.at("ca"))
    command = ("issue", pki.at("ca"), "--role", "device", "--name", "b", "--out", pki.at("b"))
    assert reason in pki.refused(*command, *words)
    assert not (pki.folder / "b").exists()


def test_without_an_authority_nothing_is_issued(pki: Pki) -> None:
    command = ("issue", pki.at("ca"), "--role", "read", "--name", "b", "--out", pki.at("b"))
    assert "no authority is here" in pki.refused(*command)
    assert "cannot read" in pki.refused("rotate", pki.at("ca"), pki.at("b"))


def test_a_token_is_granted_shown_and_revoked(pki: Pki) -> None:
    table = pki.folder / "tokens.json"
    grant = ("token", "--tokens", str(table), "--role", "submit")
    pki(*grant, "--user", "ann", "--out", pki.at("ann/token"))
    pki(*grant, "--user", "bob", "--out", pki.at("bob/token"), "--days", "2")
    token = read_token(pki.folder / "ann" / "token")
    assert token not in table.read_text()
    assert TokenTable(table, SystemClock()).identity_of(token).user == "ann"
    said = pki("show", str(table)).splitlines()
    assert said[0].endswith("ann (submit), for ever")
    assert "bob (submit), until" in said[1]
    assert "1 token of ann is void" in pki("revoke", "--tokens", str(table), "--user", "ann")
    assert [entry.user for entry in read_table(table)] == ["bob"]
    assert "no token of ann" in pki.refused("revoke", "--tokens", str(table), "--user", "ann")


def test_stolen_folders_are_made_void_by_name(pki: Pki) -> None:
    pki("init", pki.at("ca"))
    issue = ("issue", pki.at("ca"), "--role", "submit", "--name")
    pki(*issue, "ann", "--out", pki.at("ann"))
    pki("rotate", pki.at("ca"), pki.at("ann"))
    pki(*issue, "bob", "--out", pki.at("bob"))
    file = pki.folder / "revoked.json"
    revoke = ("revoke", "--authority", pki.at("ca"), "--revoked", str(file), "--user")
    assert "2 certificates of ann are void" in pki(*revoke, "ann")
    assert "1 certificate of bob is void" in pki(*revoke, "bob")
    assert [CertificateName.of_uri(row.holder).name for row in read_revoked(file)] == [
        *("ann", "ann", "bob")
    ]
    table = RevokedCertificates(file)
    with pytest.raises(CertificateError, match=r"of ann \(submit\) was revoked") as void:
        table.require_good(TlsFolder(pki.folder / "ann").read().certificate)
    assert "tilefarm pki issue" in void.value.hint
    pki(*issue, "ann", "--out", pki.at("ann"))
    table.require_good(TlsFolder(pki.folder / "ann").read().certificate)
    assert "issued no certificate to eve" in pki.refused(*revoke, "eve")
    assert "1 certificate of ann is void" in pki(*revoke, "ann")
    assert "that is not revoked" in pki.refused(*revoke, "ann")


def test_what_cannot_be_revoked_is_told(pki: Pki) -> None:
    assert "neither tokens nor certificates" in pki.refused("revoke", "--user", "ann")
    alone = ("revoke", "--user", "ann", "--authority", pki.at("ca"))
    assert "together" in pki.refused(*alone)
    file = ("--revoked", pki.at("revoked.json"))
    assert "no authority is here" in pki.refused(*alone, *file)
    pki("init", pki.at("ca"))
    (pki.folder / "ca" / "issued.txt").write_text("nonsense\n")
    assert "each line is SERIAL" in pki.refused(*alone, *file)


def test_an_expired_certificate_is_noticed_before_a_call(tmp_path: Path, pki: Pki) -> None:
    folder = Parties(tmp_path / "pki").issue(FarmRole.SUBMIT, "ann", hosts=(), age_days=3.0)
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    with pytest.raises(CertificateError, match="the certificate has expired on") as e:
        credentials(token, folder)
    assert f"tilefarm pki rotate AUTHORITY {folder}" in e.value.hint
    assert "EXPIRED" in pki("show", str(folder))
    with pytest.raises(CertificateError, match="is from") as early:
        require_current(TlsFolder(folder), now_seconds=0.0)
    assert "clock" in early.value.hint


def test_signing_keys_are_made_and_shown(pki: Pki) -> None:
    pki("key", "--out", pki.at("farm.key"))
    token = pki.folder / "token"
    token.write_text("secret")
    token.chmod(0o600)
    private, public = (
        credentials(token, None, pki.folder / name).signing_key
        for name in ("farm.key", "farm.key.pub")
    )
    artifact = Digest.of(b"code")
    Signatures(public).require(artifact, signer(private)(artifact))
    assert "File exists" in pki.refused("key", "--out", pki.at("farm.key"))


def test_a_server_needs_some_token() -> None:
    with pytest.raises(SettingsError, match="--token-file or --tokens"):
        security(None, None, tls=None, audit=None)
