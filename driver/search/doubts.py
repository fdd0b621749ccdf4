"""Results that their devices have not confirmed yet, and what becomes of them.

A device runs its known kernel now and then. As long as that is right, so is what ran before. When
it is not, nobody knows since when: everything since it last was right is measured again. A device
that only goes away may come back, and not be right then; one that stays away, and does not say that
it was wrong, is believed. So it is with what an earlier session left that could not wait for it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from driver.search.moves import JobId

_Job = TypeVar("_Job")


@dataclass(frozen=True, slots=True)
class Doubts(Generic[_Job]):
    """Ended jobs by number, with the devices that may still take their results back.

    Attributes:
        held: (device, job) of each.
        asked: devices that were told to confirm.
    """

    held: Mapping[JobId, tuple[str, _Job]] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    def __contains__(self, number: object) -> bool:
        return number in self.held

    @property
    def unasked(self) -> tuple[str, ...]:
        """Devices with results to confirm that were not told to, in order of the results."""
        devices = dict.fromkeys(device for device, _ in self.held.values())
        return tuple(device for device in devices if device not in self.asked)

    def device_of(self, number: JobId) -> str | None:
        """The device that has not confirmed a job; None if it is not in doubt."""
        return self.held[number][0] if number in self.held else None

    def of(self, device: str) -> dict[JobId, _Job]:
        """The unconfirmed jobs of a device."""
        return {number: job for number, (where, job) in self.held.items() if where == device}

    def holding(self, number: JobId, device: str, job: _Job) -> Doubts[_Job]:
        """A job more; what was asked of its device is asked anew."""
        return Doubts({**self.held, number: (device, job)}, self.asked - {device})

    def asking(self, devices: tuple[str, ...]) -> Doubts[_Job]:
        """These were told to confirm."""
        return replace(self, asked=self.asked | set(devices))

    def unasking(self, device: str) -> Doubts[_Job]:
        """A device is gone: what was asked of it is asked anew if it comes back."""
        return replace(self, asked=self.asked - {device})

    def dropping(self, numbers: Container[JobId]) -> Doubts[_Job]:
        """These are told no more."""
        return replace(self, held={n: told for n, told in self.held.items() if n not in numbers})

    def without(self, device: str) -> Doubts[_Job]:
        """A device has confirmed, or its results were taken back."""
        held = {n: (where, job) for n, (where, job) in self.held.items() if where != device}
        return Doubts(held, self.asked - {device})
