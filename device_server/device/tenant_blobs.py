"""The store as one user sees it: what they sent and what their runs gave; nothing else is there.

Two users who send the same bytes share a file and do not learn of each other. Whoever names a
digest has to have sent the bytes, so a digest alone gives nobody the content, nor the knowledge
that others have it. On a farm with one secret there is one user, who sees everything.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import MissingBlobError

from device_server.device.blob_store import BlobStore
from device_server.device.offload import offloaded
from device_server.device.uploads import BlobWriter

MOST_KNOWN: Final = 1 << 16
"""Blobs that users are known to have sent; who is forgotten sends theirs again."""


class Senders:
    """Which users have sent, or made, which blobs; those used last are remembered."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, Digest], None] = OrderedDict()

    def note(self, user: str, digests: Iterable[Digest]) -> None:
        """A user has these bytes."""
        if not user:
            return
        for digest in digests:
            self._known[user, digest] = None
            self._known.move_to_end((user, digest))
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    def knows(self, user: str, digest: Digest) -> bool:
        """Whether a user may be told of a blob."""
        return not user or (user, digest) in self._known


class TenantBlobs:
    """One user's view of the store. A blob of others is missing, whatever is asked about it."""

    def __init__(self, store: BlobStore, senders: Senders, user: str) -> None:
        self._store = store
        self._senders = senders
        self._user = user

    def missing(self, digests: Iterable[Digest]) -> tuple[Digest, ...]:
        """Those that are not here; see `BlobStore.missing`."""
        wanted = tuple(dict.fromkeys(digests))
        known = [digest for digest in wanted if self._senders.knows(self._user, digest)]
        self._senders.note(self._user, known)
        here = set(known) - set(self._store.missing(known))
        return tuple(digest for digest in wanted if digest not in here)

    def put(self, content: bytes, digest: Digest | None = None) -> Digest:
        """As `BlobStore.put`."""
        digest = self._store.put(content, digest)
        self._senders.note(self._user, [digest])
        return digest

    async def keep(self, content: bytes) -> Digest:
        """As `put`; the event loop goes on meanwhile."""
        digest = await offloaded(len(content), lambda: self._store.put(content))
        self._senders.note(self._user, [digest])
        return digest

    async def verify(self, digests: Iterable[Digest]) -> None:
        """As `BlobStore.verify`, of those that are here; the event loop goes on meanwhile."""
        known = [digest for digest in digests if self._senders.knows(self._user, digest)]
        for digest in self._store.unverified(known):
            await asyncio.to_thread(self._store.verify, digest)

    def put_briefly(self, content: bytes, digest: Digest) -> None:
        """As `BlobStore.put_briefly`."""
        self._store.put_briefly(content, digest)
        self._senders.note(self._user, [digest])

    def committed(self, digest: Digest) -> int:
        """Bytes of a blob that this user has sent; an upload goes on from there."""
        if self._senders.knows(self._user, digest) and not self._store.missing([digest]):
            return self._store.nbytes_of(digest)
        return self._store.committed(digest, self._user)

    def write(self, digest: Digest, offset: int = 0) -> BlobWriter:
        """As `BlobStore.write`; who has sent it all then says `sent`."""
        return self._store.write(digest, offset, self._user)

    def sent(self, digest: Digest) -> None:
        """An upload of this user is complete."""
        self._senders.note(self._user, [digest])

    def path(self, digest: Digest) -> Path:
        """As `BlobStore.path`."""
        self._require([digest])
        return self._store.path(digest)

    def nbytes_of(self, digest: Digest) -> int:
        """As `BlobStore.nbytes_of`."""
        self._require([digest])
        return self._store.nbytes_of(digest)

    def pinned(self, digests: Iterable[Digest]) -> AbstractContextManager[None]:
        """As `BlobStore.pinned`."""
        held = tuple(digests)
        self._require(held)
        return self._store.pinned(held)

    def _require(self, digests: Iterable[Digest]) -> None:
        for digest in digests:
            if not self._senders.knows(self._user, digest):
                raise MissingBlobError(f"blob {digest.short} is not on this device", "upload it")
