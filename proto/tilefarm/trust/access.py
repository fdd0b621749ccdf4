"""Who calls: users, the roles that methods ask for, and the names that certificates carry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

_SCHEME: Final = "spiffe://farm/"


class FarmRole(Enum):
    """What somebody is on a farm. A method names the roles that may call it; nobody else may.

    read: sees devices. submit: leases them and runs kernels. device: registers one. admin: takes
    devices out of service, reads the audit. tracker: answers; it may call nothing.
    """

    READ = "read"
    SUBMIT = "submit"
    DEVICE = "device"
    ADMIN = "admin"
    TRACKER = "tracker"


ROLE_NAMES: Final = ", ".join(role.value for role in FarmRole)
CALLING_ROLES: Final = frozenset(FarmRole) - {FarmRole.TRACKER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who proved who they are, with all roles that they may act in."""

    user: str
    roles: frozenset[FarmRole]

    def __str__(self) -> str:
        return f"{self.user} ({', '.join(sorted(role.value for role in self.roles))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateName:
    """Whom a certificate is for: the URI `spiffe://farm/ROLE/NAME` among its alternative names."""

    role: FarmRole
    name: str

    @property
    def uri(self) -> str:
        return f"{_SCHEME}{self.role.value}/{self.name}"

    def __str__(self) -> str:
        return f"{self.name} ({self.role.value})"

    @classmethod
    def of_uri(cls, uri: str) -> Self:
        """The name in a URI.

        Raises:
            ValueError: it is none of ours.
        """
        role, _, name = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or not is_name(name):
            raise ValueError(f"{uri!r} is not {_SCHEME}ROLE/NAME")
        return cls(role=FarmRole(role), name=name)


def is_name(text: str) -> bool:
    """Whether a user or a device may be called so: letters, digits and `. _ -`, at most 64."""
    return 0 < len(text) <= 64 and text.isascii() and all(c.isalnum() or c in "._-" for c in text)
