"""The tracker as a driver sees it: devices to lease, and who has them."""

from __future__ import annotations

from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import BusyError, InfraError, ProtocolError, UnreachableError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.names import IdSource, RandomIds
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.empty import Empty
from tilefarm.trust.tls import Credentials

_CALL_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.2


class TrackerClient(Closing):
    """Leases devices; thread-safe; a context manager.

    Args:
        address: `host:port` or `unix:/path`.
        credentials: what proves who calls.
        clock: for the time that `acquire` waits.
        ids: names requests.

    Every method raises AccessError if the tracker does not know who calls or their role does not do
    that, and UnreachableError if it does not answer.
    """

    def __init__(
        self,
        address: str,
        credentials: Credentials,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self._caller = Caller(address, credentials, peer="tracker", lost=UnreachableError)
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()

    def close(self) -> None:
        """Ends the connection; leases that were not released expire."""
        self._caller.close()

    def devices(self) -> list[DeviceInfo]:
        """All living devices, by name."""
        return [state.device for state in self.states()]

    def states(self) -> tuple[tracker_calls.DeviceState, ...]:
        """All living devices, by name, with the owners of their leases."""
        return self.overview().states

    def overview(self) -> tracker_calls.Devices:
        """All living devices, by name, with their use, and who waits for one."""
        return self._caller.unary(methods.LIST_DEVICES, Empty(), timeout_seconds=_CALL_SECONDS)

    def refused_runs(self, name: str) -> tuple[tracker_calls.RefusedRun, ...]:
        """The runs that a device refuses because they crashed it, the last one to crash at the end.

        Raises:
            NoDeviceError: no such device lives.
        """
        listed = self._caller.unary(
            methods.LIST_REFUSED_RUNS,
            tracker_calls.ListRefusedRuns(name=name),
            timeout_seconds=_CALL_SECONDS,
        )
        return listed.runs

    def drain(self, name: str, why: str) -> None:
        """Takes a device out of service; its lease may end.

        Raises:
            NoDeviceError: no such device lives.
        """
        self._caller.unary(
            methods.DRAIN, tracker_calls.Drain(name=name, why=why), timeout_seconds=_CALL_SECONDS
        )

    def readmit(self, name: str) -> None:
        """Puts a device back into service.

        Raises:
            NoDeviceError: no such device lives.
        """
        self._caller.unary(
            methods.READMIT, tracker_calls.Readmit(name=name), timeout_seconds=_CALL_SECONDS
        )

    def acquire(
        self,
        target: Digest,
        labels: tuple[tuple[str, str], ...] = (),
        *,
        wait_seconds: float,
        owner: str,
        priority: int = 0,
        job: str = "",
        request_id: str = "",
    ) -> Lease | None:
        """A lease of a device of this target with all these labels; None if none comes free.

        Args:
            target: digest of the target that the device must implement.
            labels: (key, value) pairs that it must have.
            wait_seconds: how long to stand in line. A tracker that is away or busy meanwhile is
                forgiven, and a busy one is asked again when it said so.
            owner: who asks, for people.
            priority: higher ones are served first.
            job: one word for all leases of one run; see `tracker_calls.Acquire`.
            request_id: of an earlier call that ended in vain: its place in the line is kept.
        """
        request_id = request_id or self.fresh_request()
        until = self._clock.seconds() + wait_seconds
        while True:
            left = max(until - self._clock.seconds(), 0.0)
            wish = tracker_calls.Acquire(
                request_id=request_id,
                target=target,
                labels=labels,
                wait_seconds=left,
                owner=owner,
                priority=priority,
                job=job,
            )
            try:
                reply = self._caller.unary(
                    methods.ACQUIRE, wish, timeout_seconds=left + _CALL_SECONDS
                )
            except InfraError as error:
                pause = error.retry_seconds if isinstance(error, BusyError) else _RETRY_SECONDS
                if isinstance(error, ProtocolError) or self._clock.seconds() + pause > until:
                    raise
                self._clock.sleep(pause)
            else:
                return reply.lease

    def fresh_request(self) -> str:
        """A name for one wish, however often it is repeated."""
        return self._ids.fresh("acquire")

    def renew(self, lease: Lease, *, lends: bool = False) -> float | None:
        """Keeps a lease for another time to live; in how many seconds others want it, if they do.

        Args:
            lease: the lease.
            lends: who has it gives it back when it is wanted; see `tracker_calls.Renewed`.

        Raises:
            LeaseError: it does not live any more.
        """
        renewed = self._caller.unary(
            methods.RENEW,
            tracker_calls.Renew(lease_id=lease.lease_id, lends=lends),
            timeout_seconds=_CALL_SECONDS,
        )
        return renewed.wanted_seconds

    def release(self, lease: Lease, *, device_lost: bool = False, why: str = "") -> None:
        """Gives a lease back, whether or not it still lives.

        Args:
            lease: the lease.
            device_lost: its device stopped answering; nobody gets it before it says it is well.
            why: what was seen of that; of a device that was not lost: why it says that it rests.
        """
        self._caller.unary(
            methods.RELEASE,
            tracker_calls.Release(lease_id=lease.lease_id, device_lost=device_lost, why=why),
            timeout_seconds=_CALL_SECONDS,
        )
