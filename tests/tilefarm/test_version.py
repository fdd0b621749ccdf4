"""Who understands whom: majors must agree, minors need not, and silence means the first version."""

from __future__ import annotations

import pytest
from tilefarm.errors import ProtocolError, VersionError
from tilefarm.rpc.version import UNNAMED, Version, announcement, require_understood, version_in

OURS = Version(2, 1)
((KEY, _),) = announcement()


@pytest.mark.parametrize("theirs", [Version(2, 0), Version(2, 1), Version(2, 40)], ids=str)
def test_one_major_is_understood(theirs: Version) -> None:
    require_understood(theirs, who="the device", ours=OURS)


@pytest.mark.parametrize(
    ("theirs", "older"),
    [(Version(1, 9), "the other side"), (Version(3, 0), "this side")],
    ids=["an older one", "a newer one"],
)
def test_another_major_is_refused_with_both_named(theirs: Version, older: str) -> None:
    with pytest.raises(VersionError) as told:
        require_understood(theirs, who="the device", ours=OURS)
    assert told.value.what == f"the device speaks protocol {theirs}, not 2.1"
    assert told.value.hint.endswith(f"{older} has the older one")


def test_a_call_names_its_version() -> None:
    assert version_in(announcement(Version(2, 7))) == Version(2, 7)
    assert version_in([]) == UNNAMED


@pytest.mark.parametrize("text", ["", "2", "2.", "two.one", "2.1.0", "-2.1", "9999999.0"])
def test_nonsense_is_no_version(text: str) -> None:
    with pytest.raises(ProtocolError, match="is not MAJOR"):
        version_in([(KEY, text)])
