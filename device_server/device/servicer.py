"""Translates the device's calls for the gate, the store, the executor and the cache of answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, ProtocolError, TilefarmError
from tilefarm.measurement import is_spoiled
from tilefarm.plural import plural
from tilefarm.rpc import device_calls, methods, serving
from tilefarm.rpc.caller import CHUNK_NBYTES
from tilefarm.rpc.empty import Empty
from tilefarm.rpc.timing import serving_part
from tilefarm.trust.access import Identity
from tilefarm.trust.signing import Signatures
from tilefarm.watch.log import Level, Log

from device_server.device.admission import require_modest
from device_server.device.blob_store import BlobStore
from device_server.device.executor import Executor
from device_server.device.fencing import FenceGate
from device_server.device.health_monitor import HealthMonitor
from device_server.device.idempotency_cache import IdempotencyCache
from device_server.device.spoiled import SpoiledFence
from device_server.device.tenant_blobs import Senders, TenantBlobs
from device_server.device.upload_statistics import UploadStatistics
from device_server.device.uploads import BlobWriter
from device_server.tenancy import Tenancy

BATCH_SECONDS: Final = 1.0
"""After that no run of a batch begins: its caller may want something else by then."""

MOST_BATCH_NBYTES: Final = 2 << 20
"""Of replies, after which no run of a batch begins: they are one message."""


class DeviceServicer:
    """Answers the device's calls. Lives in one event loop.

    With a signing key it loads artifacts that are signed with it, and no others.

    Raises:
        SettingsError: the signing key is none for a device.
    """

    def __init__(
        self,
        capabilities: device_calls.Capabilities,
        gate: FenceGate,
        store: BlobStore,
        executor: Executor,
        watch: HealthMonitor,
        spoiled: SpoiledFence,
        *,
        clock: Clock,
        log: Log,
        signing_key: bytes | None = None,
    ) -> None:
        self._capabilities = capabilities
        self._gate = gate
        self._store = store
        self._executor = executor
        self._watch = watch
        self._spoiled = spoiled
        self._signatures = Signatures(signing_key)
        self._clock = clock
        self._log = log
        self._cache = IdempotencyCache()
        self._uploads = UploadStatistics()
        self._senders = Senders()

    def routes(self) -> list[serving.Route[Any, Any]]:
        """The calls that this servicer answers."""
        return [
            serving.unary(methods.GET_CAPABILITIES, self.get_capabilities),
            serving.unary(methods.FIND_MISSING, self.find_missing),
            serving.unary(methods.QUERY_WRITE, self.query_write),
            serving.upload(methods.WRITE, self.write),
            serving.unary(methods.LOAD_MODULE, self.load_module),
            serving.unary(methods.RUN, self.run),
            serving.unary(methods.RUN_BATCH, self.run_batch),
            serving.unary(methods.CHECK, self.check),
            serving.download(methods.READ, self.read),
        ]

    async def get_capabilities(self, _: Empty, _by: Identity) -> device_calls.Capabilities:
        return replace(self._capabilities, spoiled_fence=self._spoiled.fence)

    def _blobs(self, by: Identity) -> TenantBlobs:
        return TenantBlobs(self._store, self._senders, by.user)

    async def find_missing(self, call: device_calls.Digests, by: Identity) -> device_calls.Digests:
        return device_calls.Digests(self._blobs(by).missing(call.digests))

    async def query_write(
        self, call: device_calls.QueryWrite, by: Identity
    ) -> device_calls.Committed:
        self._gate.admit(call.claim, by.user)
        return device_calls.Committed(nbytes=self._blobs(by).committed(call.digest))

    async def write(
        self, chunks: AsyncIterator[device_calls.Chunk], by: Identity
    ) -> device_calls.Stored:
        first = await anext(chunks, None)
        if first is None:
            return device_calls.Stored(nbytes=0)
        if first.claim is None:
            raise ProtocolError("the first message of an upload carries no claim")
        tenancy = self._gate.admit(first.claim, by.user)
        return await tenancy.during(self._receive(first, chunks, self._blobs(by)))

    async def _receive(
        self,
        first: device_calls.Chunk,
        chunks: AsyncIterator[device_calls.Chunk],
        blobs: TenantBlobs,
    ) -> device_calls.Stored:
        """Takes the blobs of an upload."""
        stored = 0
        chunk: device_calls.Chunk | None = first
        while chunk:
            with blobs.write(chunk.digest, chunk.offset) as writer:
                await _receive_one(writer, chunk, chunks)
                stored += writer.nbytes
            blobs.sent(chunk.digest)
            self._uploads.note([chunk.digest])
            chunk = await anext(chunks, None)
        self._note_stored(stored)
        return device_calls.Stored(nbytes=stored)

    async def load_module(
        self, call: device_calls.LoadModule, by: Identity
    ) -> device_calls.ModuleVerdict:
        self._gate.admit(call.claim, by.user)
        self._signatures.require(call.artifact, call.signature)
        return device_calls.ModuleVerdict(
            rejection=await self._executor.verdict(call.artifact, self._blobs(by))
        )

    async def run(self, call: device_calls.Run, by: Identity) -> device_calls.RunReply:
        def still_mine() -> Tenancy:
            return self._gate.admit(call.claim, by.user)

        require_modest(call)
        tenancy = still_mine()
        device = self._capabilities.name
        self._signatures.require(call.job.artifact, call.signature)
        blobs = self._blobs(by)
        self._keep(call, blobs)

        async def run() -> device_calls.RunReply:
            found, sent = self._uploads.used(call.job.blobs)
            self._log("needed", level=Level.DEBUG, device=device, found=found, sent=sent)
            return await self._executor.run(call.job, still_mine, tenancy, blobs)

        return await self._cache.answer(tenancy, call.request_id, call.job, run)

    async def run_batch(
        self, call: device_calls.RunBatch, by: Identity
    ) -> device_calls.RunBatchReply:
        replies: list[device_calls.RunReply] = []
        nbytes = 0
        ends = self._clock.seconds() + BATCH_SECONDS
        for run in call.runs:
            try:
                replies.append(await self._part(run, by))
            except TilefarmError:
                if not replies:
                    raise
                break
            nbytes += self._cache.nbytes(run.request_id)
            late = self._clock.seconds() >= ends
            if is_spoiled(replies[-1].outcome) or late or nbytes >= MOST_BATCH_NBYTES:
                break
        return device_calls.RunBatchReply(tuple(replies))

    async def _part(self, run: device_calls.Run, by: Identity) -> device_calls.RunReply:
        """A run of a batch."""
        with serving_part(run.candidate, run.request_id) as timing:
            reply = await self.run(run, by)
            return replace(reply, served=timing.served) if timing else reply

    def _keep(self, call: device_calls.Run, blobs: TenantBlobs) -> None:
        """Put what a run brings along where uploads go."""
        brought = {Digest.of(content): content for content in call.blobs}
        for digest in brought.keys() - call.job.blobs:
            raise CorruptBlobError(
                f"run {call.job.artifact.short} brings a blob that it does not name, of"
                f" {plural(len(brought[digest]), 'byte')}: {digest.short}",
                "send it again",
            )
        missing = blobs.missing(brought)
        for digest in missing:
            if digest == call.job.artifact:
                blobs.put_briefly(brought[digest], digest)
                self._executor.judge(digest, brought[digest])
            else:
                blobs.put(brought[digest], digest)
        self._uploads.note(missing)
        if missing:
            self._note_stored(sum(len(brought[digest]) for digest in missing))

    def _note_stored(self, nbytes: int) -> None:
        self._log("stored", level=Level.DEBUG, device=self._capabilities.name, nbytes=nbytes)

    async def check(self, call: device_calls.Check, by: Identity) -> Empty:
        await self._watch.confirm(self._gate.admit(call.claim, by.user))
        return Empty()

    async def read(
        self, call: device_calls.Read, by: Identity
    ) -> AsyncIterator[device_calls.Piece]:
        blobs, handler = self._blobs(by), asyncio.current_task()
        assert handler is not None
        tenancy = self._gate.newest_of(by.user)
        await blobs.verify([call.digest])
        with (
            tenancy.stopping(handler.cancel),
            blobs.pinned([call.digest]),
            blobs.path(call.digest).open("rb") as file,
        ):
            while data := file.read(CHUNK_NBYTES):
                try:
                    yield device_calls.Piece(data)
                except asyncio.CancelledError:
                    tenancy.require()
                    raise


async def _receive_one(
    writer: BlobWriter, chunk: device_calls.Chunk, chunks: AsyncIterator[device_calls.Chunk]
) -> None:
    """Takes one blob, of which `chunk` is the first piece."""
    digest = chunk.digest
    while True:
        writer.append(chunk.offset, chunk.data)
        if chunk.finish:
            writer.commit()
            return
        following = await anext(chunks, None)
        if following is None or following.digest != digest:
            raise CorruptBlobError(
                f"the upload of blob {digest.short} ends after {plural(writer.nbytes, 'byte')}",
                "go on from there",
            )
        chunk = following
