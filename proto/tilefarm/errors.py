"""Every error that tilefarm raises on purpose, split by who must act.

TilefarmError
├── UserError             the user: exit code 2
│   ├── ModelError        the network cannot be taken; lists every offending node
│   ├── DataError         calibration or evaluation arrays do not fit the network
│   ├── TargetError       unknown target, or hardware parameters that cannot be
│   ├── SettingsError     an option or a settings file says something impossible
│   ├── OutputError       the output folder belongs to something else or cannot be written
│   └── ScheduleError     a primitive was asked for something the program does not allow
├── NoDeviceError         nobody has a fitting device right now: exit code 3
└── FarmFault             the farm: exit code 70
    ├── InfraError        a part of the farm misbehaved (protocol, storage, a lost process)
    │   ├── ProtocolError     a call says something that the protocol does not allow
    │   ├── MissingBlobError  a device does not hold a blob that a call names: upload it again
    │   ├── CorruptBlobError  bytes are not those that their digest promises: send them again
    │   └── CapacityError     a blob or a queue is over its cap
    ├── DeviceLostError   a device stopped answering
    ├── LeaseError        a lease is unknown, expired or out of date
    └── AccessError       the token or the role does not allow the call: exit code 2

Expected failures of a candidate are not errors but values: see `artifact.BuildFailure` and
`measurement.RunFailure`.
"""

from __future__ import annotations

from typing import ClassVar


class TilefarmError(Exception):
    """What went wrong, why, and what to try. Plain strings, so it pickles.

    Args:
        what: one line that names the thing and the reason.
        hint: what to try; empty when there is nothing to say.
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what, hint)

    @property
    def what(self) -> str:
        return str(self.args[0])

    @property
    def hint(self) -> str:
        return str(self.args[1])

    def __str__(self) -> str:
        return self.what + (f"\n  try: {self.hint}" if self.hint else "")


class UserError(TilefarmError):
    """Something the user gave cannot be used."""

    exit_code = 2


class ModelError(UserError):
    """The network cannot be taken."""


class DataError(UserError):
    """Arrays do not fit the network."""


class TargetError(UserError):
    """Unknown target or impossible hardware parameters."""


class SettingsError(UserError):
    """An option or a settings file says something impossible."""


class OutputError(UserError):
    """The output folder belongs to something else, or cannot be written."""


class ScheduleError(UserError):
    """A schedule primitive refused: `primitive(subject): why`.

    Args:
        primitive: name of the primitive, for example "split".
        subject: the loop, block or buffer it was applied to.
        why: the reason, with the numbers.
        hint: what to try.
    """

    def __init__(self, primitive: str, subject: str, why: str, hint: str = "") -> None:
        Exception.__init__(self, primitive, subject, why, hint)

    @property
    def what(self) -> str:
        primitive, subject, why, _ = self.args
        return f"{primitive}({subject}): {why}"

    @property
    def hint(self) -> str:
        return str(self.args[3])


class NoDeviceError(TilefarmError):
    """No fitting device can be had."""

    exit_code = 3


class FarmFault(TilefarmError):
    """The farm's own fault; the work may be tried again."""


class InfraError(FarmFault):
    """A part of the farm misbehaved."""


class ProtocolError(InfraError):
    """A call says something that the protocol does not allow."""


class MissingBlobError(InfraError):
    """A device does not hold a blob that a call names."""


class CorruptBlobError(InfraError):
    """Bytes are not those that their digest promises."""


class CapacityError(InfraError):
    """A blob or a queue is over its cap."""


class DeviceLostError(FarmFault):
    """A device stopped answering."""


class LeaseError(FarmFault):
    """A lease is unknown, expired or out of date."""


class AccessError(FarmFault):
    """The token or the role does not allow the call; trying again does not help."""

    exit_code = 2
