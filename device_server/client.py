"""The farm as a driver sees it: a tracker to lease devices from, and a leased device to run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from tilefarm import calls, methods, wire
from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import (
    CorruptBlobError,
    DeviceLostError,
    InfraError,
    LeaseError,
    ProtocolError,
)
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.names import IdSource, RandomIds
from tilefarm.rpc import CHUNK_NBYTES, Caller

_CALL_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 0.2
_RUN_MARGIN_SECONDS: Final = 40.0
"""Beyond the kernel's time: more than the device's own grace, so that its story arrives first."""
_SLOWEST_LINK_NBYTES_PER_SECOND: Final = 1 << 20


class TrackerClient:
    """Leases devices; thread-safe; a context manager.

    Args:
        address: `host:port` or `unix:/path`.
        token: the farm's shared secret.
        clock: for the time that `acquire` waits.
        ids: names requests.

    Every method raises AccessError if the tracker does not know the token, and InfraError if it
    does not answer.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self._caller = Caller(address, token, peer="tracker", lost=InfraError)
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; leases that were not released expire."""
        self._caller.close()

    def devices(self) -> list[DeviceInfo]:
        """All living devices, by name."""
        return [state.device for state in self.states()]

    def states(self) -> tuple[calls.DeviceState, ...]:
        """All living devices, by name, with the owners of their leases."""
        reply = self._caller.unary(
            methods.LIST_DEVICES, calls.Nothing(), timeout_seconds=_CALL_SECONDS
        )
        return reply.states

    def acquire(
        self,
        target: Digest,
        labels: tuple[tuple[str, str], ...] = (),
        *,
        wait_seconds: float,
        owner: str,
    ) -> Lease | None:
        """A lease of a device of this target with all these labels; None if none comes free.

        Args:
            target: digest of the target that the device must implement.
            labels: (key, value) pairs that it must have.
            wait_seconds: how long to stand in line. A tracker that is away meanwhile is forgiven.
            owner: who asks, for people.
        """
        request_id = self._ids.fresh("acquire")
        until = self._clock.seconds() + wait_seconds
        while True:
            left = max(until - self._clock.seconds(), 0.0)
            wish = calls.Acquire(
                request_id=request_id, target=target, labels=labels, wait_seconds=left, owner=owner
            )
            try:
                reply = self._caller.unary(
                    methods.ACQUIRE, wish, timeout_seconds=left + _CALL_SECONDS
                )
            except InfraError as error:
                if isinstance(error, ProtocolError) or self._clock.seconds() >= until:
                    raise
                self._clock.sleep(_RETRY_SECONDS)
            else:
                return reply.lease

    def renew(self, lease: Lease) -> None:
        """Keeps a lease for another time to live.

        Raises:
            LeaseError: it does not live any more.
        """
        self._caller.unary(
            methods.RENEW, calls.Renew(lease_id=lease.lease_id), timeout_seconds=_CALL_SECONDS
        )

    def release(self, lease: Lease, *, device_lost: bool = False) -> None:
        """Gives a lease back, whether or not it still lives.

        Args:
            lease: the lease.
            device_lost: its device stopped answering; nobody gets it before its next heartbeat.
        """
        self._caller.unary(
            methods.RELEASE,
            calls.Release(lease_id=lease.lease_id, device_lost=device_lost),
            timeout_seconds=_CALL_SECONDS,
        )


class DeviceClient:
    """One leased device; used from one thread at a time; a context manager.

    Every method raises:
        DeviceLostError: the device does not answer, or hangs.
        LeaseError: the lease is out of date; somebody else has the device, or it started anew.
        InfraError: anything else that is not the job's fault.
        AccessError: the device does not know the token.
    """

    def __init__(self, lease: Lease, token: str) -> None:
        self._lease = lease
        self._claim = calls.Claim.of(lease)
        self._caller = Caller(
            lease.device.address, token, peer=f"device {lease.device.name}", lost=DeviceLostError
        )
        self._checked = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; the lease stays."""
        self._caller.close()

    @property
    def lease(self) -> Lease:
        return self._lease

    def capabilities(self) -> calls.Capabilities:
        """What the device says about itself."""
        return self._caller.unary(
            methods.GET_CAPABILITIES, calls.Nothing(), timeout_seconds=_CALL_SECONDS
        )

    def ensure(self, blobs: Mapping[Digest, bytes]) -> int:
        """Uploads those blobs that the device does not hold; gives the bytes sent."""
        self._check()
        wanted = calls.Digests(tuple(blobs))
        missing = self._caller.unary(
            methods.FIND_MISSING, wanted, timeout_seconds=_CALL_SECONDS
        ).digests
        if not missing:
            return 0
        nbytes = sum(len(blobs[digest]) for digest in missing)
        self._caller.upload(
            methods.WRITE,
            _chunks({digest: blobs[digest] for digest in missing}, self._claim),
            timeout_seconds=_transfer_seconds(nbytes),
        )
        return nbytes

    def load_module(self, artifact: Digest) -> str:
        """Has an uploaded artifact verified; gives the reason of a refusal, or an empty text."""
        self._check()
        return self._caller.unary(
            methods.LOAD_MODULE,
            calls.LoadModule(claim=self._claim, artifact=artifact),
            timeout_seconds=_CALL_SECONDS,
        ).rejection

    def run(self, job: RunJob, *, request_id: str) -> Measurement | RunFailure:
        """Runs a job whose blobs are on the device, and fetches its outputs and its timeline.

        The same request id gets the same answer, without a second run.

        Raises:
            MissingBlobError: a blob is not on the device; `ensure` it and run again.
        """
        self._check()
        reply = self._caller.unary(
            methods.RUN,
            calls.Run(claim=self._claim, request_id=request_id, job=job),
            timeout_seconds=job.timeout_seconds + _RUN_MARGIN_SECONDS,
        )
        if isinstance(reply.outcome, RunFailure):
            return reply.outcome
        timeline = wire.timeline_from_bytes(self.read(reply.timeline)) if reply.timeline else ()
        return replace(
            reply.outcome,
            outputs=tuple((name, self.read(digest)) for name, digest in reply.outputs),
            timeline=timeline,
        )

    def read(self, digest: Digest) -> bytes:
        """The bytes of a blob on the device.

        Raises:
            MissingBlobError: it is not there.
            CorruptBlobError: other bytes arrived.
        """
        pieces = self._caller.download(
            methods.READ, calls.Read(digest=digest), timeout_seconds=_READ_SECONDS
        )
        content = b"".join(piece.data for piece in pieces)
        if Digest.of(content) != digest:
            raise CorruptBlobError(f"blob {digest.short} arrived damaged", "read it again")
        return content

    def _check(self) -> None:
        """Once: is this the device that was leased, and does it speak as we do?"""
        if self._checked:
            return
        found, device = self.capabilities(), self._lease.device
        if found.protocol != calls.PROTOCOL:
            raise ProtocolError(
                f"device {device.name} speaks protocol {found.protocol}, not {calls.PROTOCOL}",
                "install the same version on both sides",
            )
        if (found.name, found.epoch) != (device.name, device.epoch):
            raise LeaseError(f"device {device.name} has started anew since the lease", "lease anew")
        self._checked = True


def _transfer_seconds(nbytes: int) -> float:
    return _CALL_SECONDS + nbytes / _SLOWEST_LINK_NBYTES_PER_SECOND


_READ_SECONDS: Final = _transfer_seconds(512 << 20)


def _chunks(blobs: Mapping[Digest, bytes], claim: calls.Claim) -> Iterator[calls.Chunk]:
    """The messages that upload these blobs, one blob after the other."""
    first: calls.Claim | None = claim
    for digest, content in blobs.items():
        for offset in range(0, max(len(content), 1), CHUNK_NBYTES):
            data = content[offset : offset + CHUNK_NBYTES]
            yield calls.Chunk(
                digest=digest,
                offset=offset,
                data=data,
                finish=offset + len(data) == len(content),
                claim=first,
            )
            first = None
