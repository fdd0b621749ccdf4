"""Who is let in: every method by every role, tokens and certificates of one person, the audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import AccessError, ForbiddenError, SettingsError
from tilefarm.rpc import methods
from tilefarm.rpc.authentication import Arrival, Authentication
from tilefarm.trust.access import CALLING_ROLES, CertificateName, FarmRole, Identity, is_name
from tilefarm.trust.tokens import SharedSecret, TokenEntry, TokenTable, read_table, table_text
from tilefarm.watch import rate_limit
from tilefarm.watch.audit import AuditEntry, AuditFile, read_audit

METHODS: list[methods.Method[Any, Any]] = [
    value for value in vars(methods).values() if isinstance(value, methods.Method)
]
ALLOWED = {
    FarmRole.READ: {"ListDevices", "ListRefusedRuns", "GetCapabilities"},
    FarmRole.SUBMIT: {
        *("ListDevices", "ListRefusedRuns", "GetCapabilities", "Acquire", "Renew", "Release"),
        *("FindMissing", "QueryWrite", "Write", "LoadModule"),
        *("Run", "RunBatch", "Check", "Read"),
    },
    FarmRole.DEVICE: {"Register", "Heartbeat", "Deregister"},
    FarmRole.ADMIN: {"ListDevices", "ListRefusedRuns", "GetCapabilities", "Drain", "Readmit"},
    FarmRole.TRACKER: set[str](),
}
"""Written out once more, so that a method that opens to another role is seen here."""


class Doors:
    """Doors on a table with a token for each role, called like it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(100.0)
        self.entries: list[AuditEntry] = []
        self.path = folder / "tokens.json"
        self.write(*(self.entry(role) for role in CALLING_ROLES))
        self.table = TokenTable(self.path, self.clock)
        self.door = Authentication(self.table, audit=self.entries.append, clock=self.clock)

    def entry(self, role: FarmRole, expires_at: float | None = None) -> TokenEntry:
        token = Digest.of(role.value.encode())
        return TokenEntry(hash=token, user="ann", role=role, expires_at=expires_at)

    def write(self, *entries: TokenEntry) -> None:
        self.path.write_text(table_text(entries))

    def knock(
        self, token: str, method: methods.Method[Any, Any] | None, certificate: str | None = None
    ) -> Identity:
        path = method.path if method else "/nowhere"
        knock = Arrival(
            path=path, authorization=f"Bearer {token}", certificate=certificate, peer="ipv4:1"
        )
        return self.door.admit(method, knock)


@pytest.fixture
def doors(tmp_path: Path) -> Doors:
    return Doors(tmp_path)


def test_every_method_names_roles_that_may_call_it() -> None:
    assert METHODS
    for method in METHODS:
        assert method.roles, f"{method.name} is for nobody"
        assert FarmRole.TRACKER not in method.roles


@pytest.mark.parametrize("role", [role for role in FarmRole if role in CALLING_ROLES])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_role_does_what_the_table_says(
    doors: Doors, method: methods.Method[Any, Any], role: FarmRole
) -> None:
    if method.name in ALLOWED[role]:
        assert doors.knock(role.value, method).user == "ann"
        assert not doors.entries
        return
    with pytest.raises(ForbiddenError, match=method.name) as refused:
        doors.knock(role.value, method)
    assert role.value in refused.value.what
    assert "tilefarm pki token --role" in refused.value.hint
    (noted,) = doors.entries
    assert (noted.user, noted.roles, noted.allowed) == ("ann", role.value, False)


def test_nobody_calls_a_method_that_is_not_there(doors: Doors) -> None:
    for role in CALLING_ROLES:
        with pytest.raises(ForbiddenError, match="no method"):
            doors.knock(role.value, None)


@pytest.mark.parametrize("token", ["", "reed", "submit "])
def test_a_stranger_is_refused_and_remembered(doors: Doors, token: str) -> None:
    with pytest.raises(AccessError, match="none of this farm") as refused:
        doors.knock(token, methods.LIST_DEVICES)
    assert "--token-file" in refused.value.hint
    (noted,) = doors.entries
    assert (noted.user, noted.method, noted.at_seconds) == ("", "ListDevices", 100.0)


def test_of_many_refusals_of_strangers_few_are_noted_and_the_others_counted(doors: Doors) -> None:
    def knock(token: str, times: int) -> None:
        for _ in range(times):
            with pytest.raises(AccessError):
                doors.knock(token, methods.DRAIN)

    knock("stranger", rate_limit.AT_ONCE + 50)
    assert len(doors.entries) == rate_limit.AT_ONCE
    knock("read", 5)
    assert [entry.user for entry in doors.entries[-5:]] == ["ann"] * 5, "who is known is noted"
    doors.clock.advance(1.0)
    knock("stranger", 2)
    assert len(doors.entries) == rate_limit.AT_ONCE + 6
    assert doors.entries[-1].why.endswith("(50 refusals before it are not noted)")
    doors.clock.advance(3600.0)
    knock("stranger", 2 * rate_limit.AT_ONCE)
    assert len(doors.entries) == 2 * rate_limit.AT_ONCE + 6


def test_of_a_long_path_the_beginning_is_noted() -> None:
    entries: list[AuditEntry] = []
    door = Authentication(SharedSecret("s"), audit=entries.append, clock=ManualClock())
    with pytest.raises(AccessError):
        door.admit(
            None, Arrival(path="/" + "x" * 8000, authorization="", certificate=None, peer="")
        )
    assert entries[0].method == "/" + "x" * 199


def test_a_token_expires(doors: Doors) -> None:
    doors.write(doors.entry(FarmRole.READ, expires_at=200.0))
    doors.knock("read", methods.LIST_DEVICES)
    doors.clock.advance(100.0)
    with pytest.raises(AccessError, match="the token of ann has expired") as refused:
        doors.knock("read", methods.LIST_DEVICES)
    assert "tilefarm pki token --role read --user ann" in refused.value.hint


def test_a_revoked_token_is_refused_without_a_restart(doors: Doors) -> None:
    doors.knock("read", methods.LIST_DEVICES)
    doors.write(doors.entry(FarmRole.SUBMIT))
    with pytest.raises(AccessError):
        doors.knock("read", methods.LIST_DEVICES)
    assert doors.knock("submit", methods.ACQUIRE).roles == {FarmRole.SUBMIT}


def test_a_certificate_and_a_token_must_be_one_persons(doors: Doors) -> None:
    ann = CertificateName(role=FarmRole.SUBMIT, name="ann").uri
    assert doors.knock("submit", methods.RUN, ann).user == "ann"
    for other in (
        CertificateName(role=FarmRole.SUBMIT, name="bob").uri,
        CertificateName(role=FarmRole.ADMIN, name="ann").uri,
    ):
        with pytest.raises(AccessError, match=r"token is that of ann.*certificate that of"):
            doors.knock("submit", methods.RUN, other)
    for nameless in ("", "spiffe://elsewhere/submit/ann", "spiffe://farm/king/ann"):
        with pytest.raises(AccessError, match="without a name"):
            doors.knock("submit", methods.RUN, nameless)


def test_with_one_secret_for_all_the_certificate_says_who_calls() -> None:
    door = Authentication(SharedSecret("s"), audit=lambda entry: None, clock=ManualClock())
    knock = Arrival(path="p", authorization="Bearer s", certificate=None, peer="")
    assert door.admit(methods.RUN, knock).roles == CALLING_ROLES
    uri = CertificateName(role=FarmRole.READ, name="bob").uri
    named = Arrival(path="p", authorization="Bearer s", certificate=uri, peer="")
    assert door.admit(methods.LIST_DEVICES, named).user == "bob"
    with pytest.raises(ForbiddenError):
        door.admit(methods.RUN, named)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not a table"),
        ("[]", "not a table"),
        ('{"version": 2, "tokens": []}', "version 2"),
        ('{"version": 1, "tokens": [{"user": "a"}]}', "not a table"),
        (
            json.dumps(
                {
                    "version": 1,
                    "tokens": [
                        {"hash": "0" * 64, "user": "a", "role": "tracker", "expires_at": None}
                    ],
                }
            ),
            "the role 'tracker'",
        ),
    ],
)
def test_what_is_no_table_of_tokens_is_refused(content: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(content)
    with pytest.raises(SettingsError, match=reason) as refused:
        TokenTable(file, ManualClock())
    assert "tilefarm pki token" in refused.value.hint


def test_a_table_that_others_can_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(table_text(()))
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="others can write"):
        read_table(file)
    with pytest.raises(SettingsError, match="No such file"):
        read_table(tmp_path / "nosuch")


def test_names_are_short_and_plain() -> None:
    assert is_name("board-1.lab_2")
    assert not any(is_name(text) for text in ("", "a b", "a/b", "ä", "x" * 65))


def test_an_audit_is_read_as_it_was_written_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "audit" / "audit.jsonl"
    audit = AuditFile(file, lambda event, **fields: None)
    entries = [
        AuditEntry(at_seconds=1.5, user="ann", roles="submit", peer="p", method=m, allowed=True)
        for m in ("Acquire", "Run")
    ]
    for entry in entries:
        audit(entry)
    with file.open("a") as end:
        end.write('{"at_sec')
    assert list(read_audit(file)) == entries
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_audit_on_a_full_disk_is_told_once_and_stops_nobody() -> None:
    events: list[str] = []
    audit = AuditFile(Path("/dev/full"), lambda event, **fields: events.append(event))
    entry = AuditEntry(at_seconds=0, user="", roles="", peer="", method="Run", allowed=True)
    audit(entry)
    audit(entry)
    assert events == ["audit_fails"]


def test_an_audit_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot write the audit"):
        AuditFile(tmp_path, lambda event, **fields: None)
    file = tmp_path / "audit"
    file.write_text("nonsense\n")
    with pytest.raises(SettingsError, match="line 1 is not one of an audit"):
        list(read_audit(file))
    with pytest.raises(SettingsError, match="cannot read the audit") as told:
        list(read_audit(tmp_path / "nosuch"))
    assert "a server's --audit" in told.value.hint
