"""When the known kernel runs on a serving device, and what follows from what it gives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tilefarm.errors import DeviceLostError, SelfTestError, SuspectError
from tilefarm.measurement import Measurement, RunFailure, Status
from tilefarm.watch.log import Level, Log

from device_server.device.canary import Canary, Drift, NotMade, Proof, Wrong
from device_server.device.health_state import HealthState
from device_server.device.runner_thread import RunnerThread
from device_server.tenancy import Tenancy

_SHORTER_RESTS: Final = 3
"""An eighth, a quarter and a half of the longest: most spells of a busy machine are soon over."""
_SUSPICIOUS: Final = frozenset({Status.RUN_CRASH, Status.WRONG_RESULT})
"""What a kernel does by its own fault or by the device's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorLimits:
    """How closely a device is watched.

    Attributes:
        every: runs after which the known kernel runs again.
        cooldown_seconds: the longest rest of a device that drifts, or could not be checked, before
            the known kernel runs again, the first ones being shorter; a third of what a search
            waits for a device if nobody says otherwise.
    """

    every: int = 50
    cooldown_seconds: float = 10.0


class HealthMonitor:
    """Lets the canary run, notes in the device's condition what it finds, and tells `spoil`.

    The known kernel runs before the device serves, after `every` runs, after each one that crashed
    or was wrong, when somebody asks, and until a device that drifted, could not be checked or was
    readmitted is right. Where it could not be run, what ran before stays unchecked.
    """

    def __init__(
        self,
        canary: Canary,
        thread: RunnerThread,
        condition: HealthState,
        limits: MonitorLimits,
        log: Log,
        *,
        device: str,
        spoil: Callable[[SuspectError], None],
    ) -> None:
        self._canary = canary
        self._thread = thread
        self._condition = condition
        self._limits = limits
        self._log = log
        self._device = device
        self._spoil = spoil
        self._unchecked = 0
        self._resting = asyncio.Event()
        self._readmitted = asyncio.Event()

    @property
    def unchecked(self) -> int:
        """Runs since the known kernel was last right."""
        return self._unchecked

    async def prove(self) -> Proof:
        """The self-test.

        Raises:
            SelfTestError: the device is not right.
            InfraError: the known kernel could not be run.
            DeviceLostError: it hangs.
        """
        try:
            async with self._thread.turn:
                proof = await self._thread.call(
                    self._canary.prove, self._canary.timeout_seconds, what="the self-test"
                )
        except SelfTestError as error:
            self._spoil(SuspectError(error.what))
            raise
        self._log("proved", device=self._device, self_test=str(proof))
        return proof

    def require_well(self) -> None:
        """Nothing if runs are worth anything.

        Raises:
            DeviceLostError: they are not.
        """
        if self._condition.trouble:
            raise self._no_service()

    async def after(self, outcome: Measurement | RunFailure) -> None:
        """A run has ended; the caller has the turn.

        Raises:
            SuspectError: the known kernel failed now, so this run and those before are suspect.
            DeviceLostError: it could not be run, so nobody knows what they are.
        """
        self._unchecked += 1
        odd = isinstance(outcome, RunFailure) and outcome.status in _SUSPICIOUS
        if odd or self._unchecked >= self._limits.every:
            await self._check()

    async def confirm(self, tenancy: Tenancy) -> None:
        """Let the known kernel run if anything ran since it was last right; takes a turn.

        What it finds is the device's own matter: once begun, it goes on when the lease ends.

        Raises:
            LeaseError: the lease has ended.
            SuspectError: it failed.
            DeviceLostError: it could not be run, or the device is in trouble already.
        """
        async with self._thread.turn_under(tenancy):
            self.require_well()
            if self._unchecked:
                await self._check()
            tenancy.require()

    async def cool_down(self) -> None:
        """Checks a resting device after each rest, for as long as the server lives."""
        while True:
            await self._resting.wait()
            self._resting.clear()
            rests = 0
            while self._condition.passing:
                share = 0.5 ** max(0, _SHORTER_RESTS - rests)
                await asyncio.sleep(self._limits.cooldown_seconds * share)
                await self._check_anew()
                rests += 1

    def readmit(self) -> None:
        """Has a device that somebody puts back into service checked anew, behind what runs."""
        self._readmitted.set()

    async def readmissions(self) -> None:
        """Checks a readmitted device, each time, for as long as the server lives."""
        while True:
            await self._readmitted.wait()
            await self._check_anew()

    async def _check_anew(self) -> None:
        """A device in trouble serves again if the known kernel is right."""
        async with self._thread.turn:
            self._readmitted.clear()  # This check is for all who have asked until now.
            try:
                finding = await self._find()
            except DeviceLostError:
                return  # It hangs, which is noted: what follows is for its board to do.
        if finding is None:
            self._condition.recover()
            self._log("recovered", device=self._device)

    async def _check(self) -> None:
        finding = await self._find()
        if isinstance(finding, NotMade):
            raise self._no_service()
        if finding is not None:
            raise self._suspect(finding)

    async def _find(self) -> Wrong | Drift | NotMade | None:
        """What is not right, and is noted; None if all is, and all runs are confirmed."""
        finding = await self._thread.call(
            self._canary.check, self._canary.timeout_seconds, what="the known kernel"
        )
        if finding is None:
            self._unchecked = 0
            return None
        self._condition.note(finding)
        if self._condition.passing:
            self._resting.set()
        if isinstance(finding, NotMade):
            self._complain("not_checked", self._condition.unsure)
        else:
            self._complain("not_right", finding.why)
            self._unchecked = 0
            self._spoil(self._suspect(finding))
        return finding

    def _complain(self, event: str, why: str) -> None:
        self._log(event, level=Level.ERROR, device=self._device, unchecked=self._unchecked, why=why)

    def _no_service(self) -> DeviceLostError:
        return DeviceLostError(
            f"device {self._device} does not serve: {self._condition.trouble}",
            retry_seconds=self._rest_seconds,
        )

    def _suspect(self, finding: Wrong | Drift) -> SuspectError:
        how = "has another pace" if isinstance(finding, Drift) else "is not right any more"
        return SuspectError(
            f"device {self._device} {how}: {finding.why}",
            "what it measured since it last was is measured again",
            self._rest_seconds,
        )

    @property
    def _rest_seconds(self) -> float:
        """Until a device that rests is looked at again; 0: it does not come back by itself."""
        return self._limits.cooldown_seconds if self._condition.rests else 0.0
