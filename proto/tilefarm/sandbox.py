"""How strongly a device confines kernels: levels, read from what a device says of its sandbox."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

SANDBOX_LABEL: Final = "sandbox"
"""The label with which a device is wanted that confines kernels so strongly, or more."""


class SandboxLevel(StrEnum):
    """What confines a kernel, the weakest first; each has what those before it have.

    NONE: limits of resources. SECCOMP: the few system calls that computing takes. LANDLOCK: no
    files and no network, should a call ever be wrong.
    """

    NONE = "none"
    SECCOMP = "seccomp"
    LANDLOCK = "landlock"

    @classmethod
    def of(cls, words: str) -> SandboxLevel:
        """The level of a device's sandbox in its words (`DeviceInfo.sandbox`)."""
        found = words.lower()
        if cls.SECCOMP not in found:
            return cls.NONE
        return cls.LANDLOCK if cls.LANDLOCK in found else cls.SECCOMP

    def is_at_least(self, wanted: str) -> bool:
        """Whether it is that level or a stronger one; not if there is no such level."""
        levels = list(SandboxLevel)
        return wanted in levels[: levels.index(self) + 1]
