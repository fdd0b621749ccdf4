"""Translates the device's calls for the gate, the store, the bench and the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tilefarm import calls, methods, serving
from tilefarm.errors import CorruptBlobError, ProtocolError
from tilefarm.rpc import CHUNK_NBYTES

from device_server.bench import Bench
from device_server.gate import FenceGate
from device_server.journal import RunJournal
from device_server.store import BlobStore, BlobWriter


class DeviceServicer:
    """Answers the device's calls. Lives in one event loop."""

    def __init__(
        self, capabilities: calls.Capabilities, gate: FenceGate, store: BlobStore, bench: Bench
    ) -> None:
        self._capabilities = capabilities
        self._gate = gate
        self._store = store
        self._bench = bench
        self._journal = RunJournal()

    def routes(self) -> list[serving.Route[Any, Any]]:
        """The calls that this servicer answers."""
        return [
            serving.unary(methods.GET_CAPABILITIES, self.get_capabilities),
            serving.unary(methods.FIND_MISSING, self.find_missing),
            serving.upload(methods.WRITE, self.write),
            serving.unary(methods.LOAD_MODULE, self.load_module),
            serving.unary(methods.RUN, self.run),
            serving.download(methods.READ, self.read),
        ]

    async def get_capabilities(self, _: calls.Nothing) -> calls.Capabilities:
        return self._capabilities

    async def find_missing(self, call: calls.Digests) -> calls.Digests:
        return calls.Digests(self._store.missing(call.digests))

    async def write(self, chunks: AsyncIterator[calls.Chunk]) -> calls.Stored:
        stored = 0
        first = await anext(chunks, None)
        if first is None:
            return calls.Stored(nbytes=0)
        if first.claim is None:
            raise ProtocolError("the first message of an upload carries no claim")
        self._gate.admit(first.claim)
        chunk: calls.Chunk | None = first
        while chunk:
            with self._store.write(chunk.digest) as writer:
                await _receive(writer, chunk, chunks)
                stored += writer.nbytes
            chunk = await anext(chunks, None)
        return calls.Stored(nbytes=stored)

    async def load_module(self, call: calls.LoadModule) -> calls.ModuleVerdict:
        self._gate.admit(call.claim)
        return calls.ModuleVerdict(rejection=self._bench.verdict(call.artifact))

    async def run(self, call: calls.Run) -> calls.RunReply:
        def still_mine() -> None:
            self._gate.admit(call.claim)

        still_mine()
        return await self._journal.answer(
            call.request_id, call.job, lambda: self._bench.run(call.job, still_mine)
        )

    async def read(self, call: calls.Read) -> AsyncIterator[calls.Piece]:
        with self._store.pinned([call.digest]), self._store.path(call.digest).open("rb") as file:
            while data := file.read(CHUNK_NBYTES):
                yield calls.Piece(data)


async def _receive(
    writer: BlobWriter, chunk: calls.Chunk, chunks: AsyncIterator[calls.Chunk]
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
                f"the upload of blob {digest.short} ends after {writer.nbytes} bytes",
                "send it again",
            )
        chunk = following
