"""Accelerators between two children: one for the device's own runs, one for its newest lease."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from tilefarm.closing import Closing

from device_server.runner.accelerator import AcceleratorProcess
from device_server.tenancy import OWN, Tenancy


@dataclass(frozen=True, slots=True)
class _Kept:
    accelerator: AcceleratorProcess
    tenancy: Tenancy
    ending: ExitStack


class IdleAccelerators(Closing):
    """Keeps those that have served a child well for the next child of the same tenancy.

    They die with their tenancy. The known kernel runs between those of a lease, and is worth
    something only where no lease has been: so it has one of its own. Not thread-safe.
    """

    def __init__(self) -> None:
        self._kept: dict[bool, _Kept] = {}

    def keep(self, accelerator: AcceleratorProcess, tenancy: Tenancy) -> None:
        """One that has nothing more to do."""
        self._drop(tenancy is OWN)
        ending = ExitStack()
        ending.enter_context(tenancy.stopping(accelerator.process.kill))
        self._kept[tenancy is OWN] = _Kept(accelerator, tenancy, ending)

    def take(self, tenancy: Tenancy, within_seconds: float) -> AcceleratorProcess | None:
        """The tenancy's, whose owner the caller is from now on.

        None if there is none that lives and may compute for so much longer.
        """
        kept = self._kept.get(tenancy is OWN)
        if kept is None:
            return None
        process = kept.accelerator.process
        is_well = process.poll() is None and process.has_time_for(within_seconds)
        if kept.tenancy is not tenancy or not is_well:
            self._drop(tenancy is OWN)
            return None
        del self._kept[tenancy is OWN]
        kept.ending.close()
        return kept.accelerator

    def close(self) -> None:
        """End them. May be called again."""
        for is_own in tuple(self._kept):
            self._drop(is_own)

    def _drop(self, is_own: bool) -> None:
        kept = self._kept.pop(is_own, None)
        if kept is not None:
            kept.ending.close()
            kept.accelerator.close()
