"""Every error that tilefarm raises on purpose, split by who must act.

TilefarmError
├── UserError             the user: exit code 2
│   ├── ModelError        the network cannot be taken; lists every offending node
│   ├── DataError         calibration or evaluation arrays do not fit the network
│   ├── TargetError       unknown target, or hardware parameters that cannot be
│   ├── SettingsError     an option or a settings file says something impossible
│   ├── OutputError       the output folder belongs to something else or cannot be written
│   │   └── DiskError         the disk is full or fails: exit code 75, the same command goes on
│   └── ScheduleError     a primitive was asked for something the program does not allow
├── NoDeviceError         nobody has a fitting device right now: exit code 3
│   ├── DevicesInUseError     there are some, and others use them
│   └── ClockError            they do not tell time by the clock that the search goes by
└── FarmFault             the farm: exit code 70
    ├── InfraError        a part of the farm misbehaved (protocol, storage, a lost process)
    │   ├── ProtocolError     a call says something that the protocol does not allow
    │   ├── ClusterLostError  the Ray cluster under a run is gone or full: exit code 75, it goes on
    │   ├── UnreachableError  nobody answers at a tracker's address: exit code 3
    │   ├── AnswerError       what the other side answers is no record, or has impossible numbers
    │   ├── MissingBlobError  a device does not hold a blob that a call names: upload it again
    │   ├── CorruptBlobError  bytes are not those that their digest promises: send them again
    │   └── CapacityError     a blob or a queue is over its cap
    │       └── BusyError         a server takes no more just now: come again after its delay
    ├── SelfTestError     a device does not give the known kernel's answer, or not in its time
    ├── DeviceLostError   a device stopped answering, or rests until its known kernel is right
    │   ├── SuspectError      it gave a wrong answer, or drifts: what it measured may be wrong too
    │   │   └── ImplausibleError  it says again and again what cannot be: this run takes it no more
    │   └── DeviceSilentError  nothing comes from it: it may live, and answer when asked again
    ├── LeaseError        a lease is unknown, expired or out of date
    └── AccessError       nobody that the other side knows: exit code 2
        ├── VersionError      one side speaks another version of the protocol
        ├── ForbiddenError    somebody whose role does not do that
        └── CertificateError  one side's certificate is not good enough for the other

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


class DiskError(OutputError):
    """The disk takes nothing more: it is full, or fails. Nobody gave anything wrong."""

    exit_code = 75


class ScheduleError(UserError):
    """A schedule primitive refused: `primitive(subject): why`.

    Args:
        primitive: name of the primitive, for example "split".
        subject: the loop, block or buffer it was applied to.
        why: the guard that failed, with the numbers.
        hint: what to try.
        step: where in a trace it happened, for example "step 3, split('i', 4)"; empty outside of
            one.
    """

    def __init__(
        self, primitive: str, subject: str, why: str, hint: str = "", step: str = ""
    ) -> None:
        Exception.__init__(self, primitive, subject, why, hint, step)

    @property
    def what(self) -> str:
        primitive, subject, why, _, step = self.args
        return f"{step}: {why}" if step else f"{primitive}({subject}): {why}"

    @property
    def hint(self) -> str:
        return str(self.args[3])

    def at(self, number: int, step: str) -> ScheduleError:
        """The same refusal, of the `number`-th step of a trace."""
        primitive, subject, why, hint, within = self.args
        if not within and not all(name in step for name in subject.split(", ")):
            why = f"{subject}: {why}"
        return ScheduleError(primitive, subject, why, hint, f"step {number}, {step}")


class NoDeviceError(TilefarmError):
    """No fitting device can be had."""

    exit_code = 3


class DevicesInUseError(NoDeviceError):
    """There are fitting devices in service, and others use them all."""


class ClockError(NoDeviceError):
    """What there is does not tell time as the devices of one search have to: all by one clock."""


class FarmFault(TilefarmError):
    """The farm's own fault; the work may be tried again."""


class InfraError(FarmFault):
    """A part of the farm misbehaved."""


class ProtocolError(InfraError):
    """A call says something that the protocol does not allow."""


class AnswerError(InfraError):
    """What the other side of a call answers is no record, or has numbers that cannot be."""


class UnreachableError(InfraError):
    """Nobody answers at a tracker's address."""

    exit_code = 3


class ClusterLostError(InfraError):
    """The Ray cluster that a run compiles on is gone, or too full; the same command continues."""

    exit_code = 75


class MissingBlobError(InfraError):
    """A device does not hold a blob that a call names."""


class CorruptBlobError(InfraError):
    """Bytes are not those that their digest promises."""


class CapacityError(InfraError):
    """A blob or a queue is over its cap."""


class BusyError(CapacityError):
    """A server takes no more just now, or no more from one user.

    Args:
        retry_seconds: when to ask again; asking earlier is in vain.
    """

    def __init__(self, what: str, hint: str = "", retry_seconds: float = 1.0) -> None:
        Exception.__init__(self, what, hint, retry_seconds)

    @property
    def retry_seconds(self) -> float:
        return float(self.args[2])


class DeviceLostError(FarmFault):
    """A device stopped answering, or rests.

    Args:
        retry_seconds: when one that rests, and says so itself, may be to be had again; 0: it does
            not rest, and nobody knows.
    """

    def __init__(self, what: str, hint: str = "", retry_seconds: float = 0.0) -> None:
        Exception.__init__(self, what, hint, retry_seconds)

    @property
    def retry_seconds(self) -> float:
        return float(self.args[2])


class DeviceSilentError(DeviceLostError):
    """A device does not answer; it may be there, and answer when asked again."""


class SelfTestError(FarmFault):
    """A device does not give the known kernel's answer, or not in the time that it takes."""


class SuspectError(DeviceLostError):
    """The known kernel failed on a device: what ran since it was last right may be wrong too."""


class ImplausibleError(SuspectError):
    """A device says what cannot be though its known kernel is right: it is not to be believed."""


class LeaseError(FarmFault):
    """A lease is unknown, expired or out of date."""


class AccessError(FarmFault):
    """The other side does not know who calls; trying again does not help."""

    exit_code = 2


class ForbiddenError(AccessError):
    """The other side knows who calls, but their role does not do that."""


class VersionError(AccessError):
    """The two sides of a call speak versions of the protocol that do not understand each other."""


class CertificateError(AccessError):
    """A certificate is missing, out of date, of another farm, or for another host."""
