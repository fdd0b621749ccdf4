"""A leased device as a driver sees it: blobs to it, jobs on it, outputs from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import (
    AnswerError,
    CapacityError,
    CorruptBlobError,
    DeviceSilentError,
    InfraError,
    LeaseError,
    MissingBlobError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunFailure, RunJob, TimelineEvent
from tilefarm.plural import plural
from tilefarm.rpc import device_calls, methods, wire
from tilefarm.rpc.caller import CHUNK_NBYTES, Caller
from tilefarm.rpc.empty import Empty
from tilefarm.rpc.served_call import TRAILER
from tilefarm.rpc.timing import calling_for
from tilefarm.rpc.version import UNNAMED, Version, require_understood
from tilefarm.trust.signing import Signer, unsigned
from tilefarm.trust.tls import Credentials

from device_server.device.batch import Ask, fitting

_CALL_SECONDS: Final = 10.0
_RUN_MARGIN_SECONDS: Final = 40.0
"""Beyond the kernel's time: more than the device's own grace, so that its story arrives first."""
_CONFIRM_SECONDS: Final = 60.0
"""A few runs of a small kernel, behind whatever runs already."""
_SLOWEST_LINK_NBYTES_PER_SECOND: Final = 1 << 20
_LEARNED: Final = Version(2, 1)
"""The first version whose devices know QueryWrite and Check."""
_BROUGHT_ALONG: Final = Version(2, 2)
"""The first version whose devices take blobs with a run."""
_BATCHES: Final = Version(2, 4)
"""The first version whose devices take several runs in one call."""
MOST_READ_NBYTES: Final = 512 << 20
"""Of a blob on a device, which may lie; of an output, as many as it has."""
_MOST_ALONG_NBYTES: Final = CHUNK_NBYTES
"""More than that is uploaded before the run: an upload that is cut short goes on where it ended."""
_REMEMBERED: Final = 4096
"""Blobs that a device is known to hold; it is asked about others, or sent them again."""


class DeviceClient(Closing):
    """One leased device; used from one thread at a time; a context manager.

    Args:
        sign: signs the artifacts that it sends.

    Every method raises:
        DeviceLostError: the device is gone, or hangs; DeviceSilentError if it does not answer, and
            may do so when asked again.
        LeaseError: the lease is out of date; somebody else has the device, or it started anew.
        InfraError: anything else that is not the job's fault.
        AccessError: the device does not know who calls, or their role does not do that.
    """

    def __init__(self, lease: Lease, credentials: Credentials, *, sign: Signer = unsigned) -> None:
        self._lease = lease
        self._claim = device_calls.Claim.of(lease)
        self._sign = sign
        self._caller = Caller(
            lease.device.address,
            credentials,
            peer=f"device {lease.device.name}",
            lost=DeviceSilentError,
        )
        self._checked = False
        self._version = UNNAMED
        self._there: set[Digest] = set()

    def close(self) -> None:
        """Ends the connection; the lease stays."""
        self._caller.close()

    @property
    def lease(self) -> Lease:
        return self._lease

    def capabilities(self) -> device_calls.Capabilities:
        """What the device says about itself."""
        return self._caller.unary(methods.GET_CAPABILITIES, Empty(), timeout_seconds=_CALL_SECONDS)

    def ensure(self, blobs: Mapping[Digest, bytes]) -> int:
        """Uploads those blobs that the device does not hold; gives the bytes sent.

        After an upload that was cut short, the same blobs go on from where it ended.

        Raises:
            CorruptBlobError: a blob arrived damaged, and is forgotten.
        """
        self._check()
        wanted = device_calls.Digests(tuple(blobs))
        missing = self._caller.unary(
            methods.FIND_MISSING, wanted, timeout_seconds=_CALL_SECONDS
        ).digests
        nbytes = self._upload({digest: blobs[digest] for digest in missing}) if missing else 0
        self._remember(blobs)
        return nbytes

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        """Uploads what a run with these blobs cannot bring along, if there is anything.

        Raises:
            CorruptBlobError: a blob arrived damaged, and is forgotten.
        """
        self._check()
        unknown = [content for digest, content in blobs.items() if digest not in self._there]
        brings = self._version >= _BROUGHT_ALONG
        if unknown and not (brings and sum(map(len, unknown)) <= _MOST_ALONG_NBYTES):
            self.ensure(blobs)

    def load_module(self, artifact: Digest) -> str:
        """Has an uploaded artifact verified; gives the reason of a refusal, or an empty text."""
        self._check()
        return self._caller.unary(
            methods.LOAD_MODULE,
            device_calls.LoadModule(
                claim=self._claim,
                artifact=artifact,
                signature=self._sign(artifact),
            ),
            timeout_seconds=_CALL_SECONDS,
        ).rejection

    def run(
        self, job: RunJob, *, request_id: str, blobs: Mapping[Digest, bytes] | None = None
    ) -> Measurement | RunFailure:
        """Runs a job, and fetches its outputs and its timeline.

        The same request id gets the same answer, without a second run.

        Args:
            job: what to run.
            request_id: of this run and no other.
            blobs: what the job names, as far as it is not known to be on the device.

        Raises:
            MissingBlobError: a blob is not on the device, nor in `blobs`.
            CorruptBlobError: a blob arrived damaged.
            SuspectError: the device is not right; neither may be what it gave unconfirmed.
        """
        (answer,) = self.run_batch([Ask(job=job, request_id=request_id, blobs=blobs or {})])
        return answer.outcome

    def run_batch(self, asked: Sequence[Ask]) -> list[device_calls.RunReply]:
        """Runs jobs one after the other, in one call; the replies of the first ones, with outputs.

        At least one is answered. The others were not begun; who wants them asks again, under the
        same request ids or others.

        Raises:
            What `run` does, if that is the answer of the first.
        """
        replies = self._asked(asked)
        for one in asked[: len(replies)]:
            self._remember(one.blobs)
        return [
            replace(reply, outcome=self._fetched(reply, one.job))
            for reply, one in zip(replies, asked, strict=False)
        ]

    def confirm(self) -> None:
        """Has the device run its known kernel, if anything ran since it was last right.

        One of an older version has no such kernel, and is believed.

        Raises:
            SuspectError: it is not right any more.
        """
        self._check()
        if self._version < _LEARNED:
            return
        self._caller.unary(
            methods.CHECK, device_calls.Check(claim=self._claim), timeout_seconds=_CONFIRM_SECONDS
        )

    def read(self, digest: Digest, most_nbytes: int = MOST_READ_NBYTES) -> bytes:
        """The bytes of a blob on the device, which are no more than that.

        Raises:
            MissingBlobError: it is not there.
            CorruptBlobError: other bytes arrived.
            AnswerError: they do not end.
        """
        pieces = self._caller.download(
            methods.READ, device_calls.Read(digest=digest), timeout_seconds=_READ_SECONDS
        )
        content = bytearray()
        for piece in pieces:
            content += piece.data
            if len(content) > most_nbytes:
                raise AnswerError(
                    f"blob {digest.short} does not end after {plural(most_nbytes, 'byte')}",
                    "read it from another device",
                )
        if Digest.of(content) != digest:
            raise CorruptBlobError(f"blob {digest.short} arrived damaged", "read it again")
        return bytes(content)

    def _asked(self, asked: Sequence[Ask]) -> Sequence[device_calls.RunReply]:
        """The answers; blobs that were believed to be there, and are not any more, are sent again.

        Raises:
            CapacityError: the device has forgotten what was just sent.
        """
        first = asked[0]
        for tries_left in (1, 0):
            try:
                return self._ask(asked)
            except MissingBlobError as missing:
                believed = self._there.intersection(first.blobs)
                self._there.clear()  # It had to make room since.
                if not (tries_left and believed):
                    raise self._too_large(missing, first) from None
        raise AssertionError("the second try answers or fails")

    def _too_large(self, missing: MissingBlobError, one: Ask) -> InfraError:
        """Why a device lacks a blob: it had no room, if the run brought all that it names."""
        if not one.blobs.keys() >= set(one.job.blobs):
            return missing
        nbytes = sum(map(len, one.blobs.values()))
        return CapacityError(
            f"{missing.what} any more, though it was just sent: device {self._lease.device.name}"
            f" cannot hold the {plural(nbytes, 'byte')} of this run together",
            "fewer samples in a run, or a device whose store is larger",
        )

    def _ask(self, asked: Sequence[Ask]) -> Sequence[device_calls.RunReply]:
        self.send_ahead(asked[0].blobs)
        runs = fitting(
            asked if self._version >= _BATCHES else asked[:1],
            claim=self._claim,
            there=self._there,
            most_nbytes=_MOST_ALONG_NBYTES,
            sign=self._sign,
        )
        within_seconds = max(run.job.limit_seconds for run in runs) + _RUN_MARGIN_SECONDS
        if len(runs) == 1:
            return [self._caller.unary(methods.RUN, runs[0], timeout_seconds=within_seconds)]
        answered = [calling_for(methods.RUN.name, one.candidate, one.request_id) for one in runs]
        call = device_calls.RunBatch(tuple(runs))
        batch = self._caller.unary(methods.RUN_BATCH, call, timeout_seconds=within_seconds)
        if not 1 <= len(batch.replies) <= len(runs):
            told = f"{plural(len(batch.replies), 'answer')} to {plural(len(runs), 'run')}"
            raise InfraError(f"device {self._lease.device.name} gives {told}")
        for reply, note in zip(batch.replies, answered, strict=False):
            note(((TRAILER, reply.served),))
        return batch.replies

    def _fetched(self, reply: device_calls.RunReply, job: RunJob) -> Measurement | RunFailure:
        """How a run ended, with what lies on the device, as far as the job asks for it."""
        if isinstance(reply.outcome, RunFailure):
            return reply.outcome
        wanted = {
            buffer.name: buffer.nbytes * job.samples for buffer in job.buffers if buffer.fetch
        }
        return replace(
            reply.outcome,
            outputs=tuple(
                (name, self.read(digest, wanted[name]))
                for name, digest in reply.outputs[: len(wanted)]
                if name in wanted
            ),
            timeline=self._timeline(reply.timeline) if reply.timeline else (),
        )

    def _timeline(self, digest: Digest) -> tuple[TimelineEvent, ...]:
        try:
            return wire.TIMELINE.decode(self.read(digest)).events
        except ValueError as error:
            raise AnswerError(
                f"device {self._lease.device.name} gives a timeline that is none: {error}"
            ) from None

    def _upload(self, blobs: Mapping[Digest, bytes]) -> int:
        first = next(iter(blobs))
        offset = self._arrived(first, len(blobs[first]))
        nbytes = sum(map(len, blobs.values())) - offset
        self._caller.upload(
            methods.WRITE,
            _chunks(blobs, self._claim, offset),
            timeout_seconds=_transfer_seconds(nbytes),
        )
        return nbytes

    def _remember(self, digests: Iterable[Digest]) -> None:
        if len(self._there) >= _REMEMBERED:
            self._there.clear()
        self._there.update(digests)

    def _arrived(self, digest: Digest, nbytes: int) -> int:
        """Bytes of a blob that an earlier upload brought; one of a single message brought all."""
        if nbytes <= CHUNK_NBYTES or self._version < _LEARNED:
            return 0
        query = device_calls.QueryWrite(claim=self._claim, digest=digest)
        return self._caller.unary(methods.QUERY_WRITE, query, timeout_seconds=_CALL_SECONDS).nbytes

    def _check(self) -> None:
        """Once: is this the device that was leased, and does it speak as we do?"""
        if self._checked:
            return
        found, device = self.capabilities(), self._lease.device
        self._version = Version(found.protocol, found.protocol_minor)
        require_understood(self._version, who=f"device {device.name}")
        if found.target != device.target:
            raise LeaseError(
                f"device {device.name} implements target {found.target.short}, but was leased as"
                f" {device.target.short}",
                "lease anew; start the device with the target that its tracker knows",
            )
        if (found.name, found.epoch) != (device.name, device.epoch):
            raise LeaseError(f"device {device.name} has started anew since the lease", "lease anew")
        self._checked = True


def _transfer_seconds(nbytes: int) -> float:
    return _CALL_SECONDS + nbytes / _SLOWEST_LINK_NBYTES_PER_SECOND


_READ_SECONDS: Final = _transfer_seconds(512 << 20)


def _chunks(
    blobs: Mapping[Digest, bytes], claim: device_calls.Claim, begin: int
) -> Iterator[device_calls.Chunk]:
    """The messages that upload these blobs, one after the other, the first from an offset on."""
    first: device_calls.Claim | None = claim
    for digest, content in blobs.items():
        for offset in range(begin, max(len(content), begin + 1), CHUNK_NBYTES):
            data = content[offset : offset + CHUNK_NBYTES]
            yield device_calls.Chunk(
                digest=digest,
                offset=offset,
                data=data,
                finish=offset + len(data) == len(content),
                claim=first,
            )
            first = None
        begin = 0
