"""The version of the protocol: sides with one major version understand each other, others do not.

A side names its version in the metadata of every call; one that names none speaks 2.0, which had no
such metadata. Every server refuses other majors. Within a major all that was stays: a newer side
does without what an older one has not yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from tilefarm.errors import ProtocolError, VersionError

_TEXT: Final = re.compile(r"(\d{1,6})\.(\d{1,6})")
_KEY: Final = "tilefarm-protocol"


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """`major` grows when an old side would misunderstand a new one, `minor` when it would miss."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The version in a text like "2.1".

        Raises:
            ValueError: there is none.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:20]!r} is not MAJOR.MINOR")
        return cls(int(found[1]), int(found[2]))


PROTOCOL: Final = Version(2, 7)
"""What this side speaks.

2.1: versions in metadata, uploads that go on, checks of a device. 2.2: leases that are lent, jobs
of one user, what devices do, runs that bring their blobs along. 2.3: which runs a device refuses.
2.4: several runs in one call. 2.5: devices that count no cycles, timed by the wall clock.
2.6: devices hear which of their leases have ended. 2.7: what a device by the clock is compared by,
what disturbed it, and that a device which is given back rests and is not lost.
"""

UNNAMED: Final = Version(2, 0)
"""What a side speaks that names no version."""


def announcement(version: Version = PROTOCOL) -> tuple[tuple[str, str], ...]:
    """The metadata that names a version."""
    return ((_KEY, str(version)),)


def version_in(metadata: Iterable[tuple[str, str | bytes]]) -> Version:
    """The version that a call names.

    Raises:
        ProtocolError: it names something else.
    """
    text = dict(metadata).get(_KEY)
    try:
        return UNNAMED if text is None else Version.parse(str(text))
    except ValueError as error:
        raise ProtocolError(f"the version of a call: {error}", "install the same version") from None


def require_understood(theirs: Version, *, who: str, ours: Version = PROTOCOL) -> None:
    """Nothing if both sides understand each other.

    Args:
        theirs: what the other side speaks.
        who: the other side in words, to begin a sentence with.
        ours: what this side speaks.

    Raises:
        VersionError: they do not.
    """
    if theirs.major != ours.major:
        older = "the other side" if theirs < ours else "this side"
        raise VersionError(
            f"{who} speaks protocol {theirs}, not {ours}",
            f"install the same version of tilefarm on both sides; {older} has the older one",
        )
