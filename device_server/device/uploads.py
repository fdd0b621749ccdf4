"""Blobs on their way in: what has arrived of each, kept when its upload is cut short."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, CorruptBlobError, InfraError
from tilefarm.plural import plural

MOST_CUT: Final = 16
"""Uploads that were cut short and are kept; the oldest are forgotten."""

_NAME: Final = re.compile("[0-9a-f]{64}")
_READ_NBYTES: Final = 1 << 20


@dataclass(slots=True, eq=False)
class _Partial:
    """What has arrived of one blob; its latest writer alone may add to it."""

    path: Path
    user: str = ""
    sha256: Any = field(default_factory=hashlib.sha256)
    nbytes: int = 0
    writer: BlobWriter | None = None


class IncomingBlobs:
    """A folder of blobs that are not whole yet. All methods are thread-safe.

    Uploads that were cut short, also by the end of a process, hold no more bytes together than one
    blob may have. Whoever sent the beginning goes on with one, and nobody else: who does not have
    the whole blob must not get it by guessing the end. What an earlier process left is that of a
    farm with one secret, where all are one user.

    Args:
        folder: its alone; what no upload left there goes.
        lock: the store's, as the caps are those of both.
        blob_nbytes: the most that a blob may have.
        make_room: makes room for so many more bytes, or raises CapacityError.
        adopt: takes over a finished file: (digest, path, bytes).
    """

    def __init__(
        self,
        folder: Path,
        lock: threading.RLock,
        *,
        blob_nbytes: int,
        make_room: Callable[[int], None],
        adopt: Callable[[Digest, Path, int], None],
    ) -> None:
        self.blob_nbytes = blob_nbytes
        self.make_room = make_room
        self.adopt = adopt
        self._folder = folder
        self.lock = lock
        self._partials = _found(folder)
        self._taking: dict[Path, int] = {}
        self._trim()

    @property
    def nbytes(self) -> int:
        """Of all that has arrived, and of what is being written."""
        with self.lock:
            arrived = sum(partial.nbytes for partial in self._partials.values())
            return arrived + sum(self._taking.values())

    @property
    def idle_nbytes(self) -> int:
        """Of uploads that were cut short."""
        with self.lock:
            return sum(nbytes for _, nbytes in self._idle())

    def give_up(self, nbytes: int) -> None:
        """Forget uploads that were cut short, the oldest first, until so many bytes are free."""
        with self.lock:
            for digest, freed in self._idle() if nbytes > 0 else []:
                if nbytes <= 0:
                    break
                self.forget(digest)
                nbytes -= freed

    def committed(self, digest: Digest, user: str = "") -> int:
        """Bytes of a blob from which a user's upload may go on; 0 if there are none."""
        with self.lock:
            partial = self._partials.get(digest)
            return partial.nbytes if partial and partial.user == user else 0

    def begin(self, digest: Digest, offset: int, user: str = "") -> BlobWriter:
        """The writer of a blob from an offset on: 0, or where its last upload was cut short.

        A writer that is still there loses the blob: its connection may be dead, unbeknownst to it.

        Raises:
            CorruptBlobError: another number of bytes is here.
        """
        with self.lock:
            if offset == 0:
                self.forget(digest)
            arrived = self.committed(digest, user)
            if arrived != offset:
                raise _jump(digest, offset, arrived)
            partial = self._partials.get(digest)
            if partial is None:
                partial = _Partial(self._folder / digest.hex, user)
                self._partials[digest] = partial
            writer = BlobWriter(self, digest, partial)
            partial.writer = writer
            return writer

    def take(self, digest: Digest, content: bytes) -> None:
        """A blob that is all here, and whose digest is right; others need not wait for the disk.

        Raises:
            CapacityError: it is over the cap, or does not fit.
            InfraError: the disk is full.
        """
        if len(content) > self.blob_nbytes:
            raise _too_much(digest, self.blob_nbytes)
        path = self._folder / f"{digest.hex}-{threading.get_ident()}"
        with self.lock:
            self.make_room(len(content))
            self._taking[path] = len(content)
        try:
            path.write_bytes(content)
            path.chmod(0o400)
            with self.lock:
                del self._taking[path]
                self.adopt(digest, path, len(content))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise _cannot_write(error) from None
        except CapacityError:
            path.unlink(missing_ok=True)
            raise
        finally:
            with self.lock:
                self._taking.pop(path, None)

    def forget(self, digest: Digest) -> None:
        """Drop what has arrived of a blob."""
        with self.lock:
            partial = self._partials.pop(digest, None)
            if partial:
                partial.writer = None
                partial.path.unlink(missing_ok=True)

    def taken(self, digest: Digest) -> None:
        """A blob is whole, and its file somebody else's."""
        with self.lock:
            self._partials.pop(digest, None)

    def leave(self, digest: Digest, partial: _Partial) -> None:
        """An upload was cut short."""
        with self.lock:
            partial.writer = None
            self._partials.move_to_end(digest)
            self._trim()

    def _trim(self) -> None:
        idle = self._idle()
        while len(idle) > MOST_CUT or sum(n for _, n in idle) > self.blob_nbytes:
            self.forget(idle.pop(0)[0])

    def _idle(self) -> list[tuple[Digest, int]]:
        return [(d, p.nbytes) for d, p in self._partials.items() if p.writer is None]


class BlobWriter(Closing):
    """Takes one blob's bytes in order; `commit` keeps them. A context manager.

    Leaving without a commit keeps what has arrived, for an upload that goes on; what cannot become
    the blob any more is forgotten.
    """

    def __init__(self, incoming: IncomingBlobs, digest: Digest, partial: _Partial) -> None:
        self._incoming = incoming
        self._digest = digest
        self._partial = partial
        try:
            self._file: IO[bytes] = partial.path.open("ab")
        except OSError as error:
            incoming.forget(digest)
            raise _cannot_write(error) from None

    def close(self) -> None:
        with contextlib.suppress(OSError):  # A full disk was told when it was written to.
            self._file.close()
        if self._partial.writer is self:
            self._incoming.leave(self._digest, self._partial)

    @property
    def nbytes(self) -> int:
        """Bytes so far, those of earlier uploads included."""
        return self._partial.nbytes

    def append(self, offset: int, data: bytes) -> None:
        """The next bytes.

        Raises:
            CorruptBlobError: they do not begin where the last ones ended, or another upload of the
                blob has begun meanwhile.
            CapacityError: the blob is over its cap, or does not fit; nothing of it is kept.
            InfraError: the disk is full.
        """
        with self._incoming.lock:
            self._append(offset, data)

    def commit(self) -> None:
        """The blob is complete.

        Raises:
            CorruptBlobError: its digest is another than was promised; nothing of it is kept.
            CapacityError: there are too many blobs.
        """
        with self._incoming.lock:
            self._commit()

    def _append(self, offset: int, data: bytes) -> None:
        partial = self._partial
        self._require_current()
        if offset != partial.nbytes:
            raise _jump(self._digest, offset, partial.nbytes)
        if partial.nbytes + len(data) > self._incoming.blob_nbytes:
            self._incoming.forget(self._digest)
            raise _too_much(self._digest, self._incoming.blob_nbytes)
        try:
            self._incoming.make_room(len(data))
        except CapacityError:
            self._incoming.forget(self._digest)
            raise
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._incoming.forget(self._digest)
            raise _cannot_write(error) from None
        partial.sha256.update(data)
        partial.nbytes += len(data)

    def _commit(self) -> None:
        self._require_current()
        partial, arrived = self._partial, self._partial.sha256.hexdigest()
        if arrived != self._digest.hex:
            self._incoming.forget(self._digest)
            raise CorruptBlobError(
                f"blob {self._digest.short} arrived as {arrived[:12]}"
                f" ({plural(partial.nbytes, 'byte')})",
                "send it again",
            )
        partial.path.chmod(0o400)
        try:
            self._incoming.adopt(self._digest, partial.path, partial.nbytes)
        except CapacityError:
            self._incoming.forget(self._digest)
            raise
        partial.writer = None
        self._incoming.taken(self._digest)

    def _require_current(self) -> None:
        if self._partial.writer is not self:
            raise CorruptBlobError(
                f"another upload of blob {self._digest.short} has begun", "send one at a time"
            )


def _found(folder: Path) -> OrderedDict[Digest, _Partial]:
    """What an earlier process left, the oldest first."""
    partials: OrderedDict[Digest, _Partial] = OrderedDict()
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
        if not _NAME.fullmatch(path.name):
            path.unlink()
            continue
        partial = _Partial(path)
        with path.open("rb") as file:
            while data := file.read(_READ_NBYTES):
                partial.sha256.update(data)
                partial.nbytes += len(data)
        partials[Digest(path.name)] = partial
    return partials


def _jump(digest: Digest, offset: int, nbytes: int) -> CorruptBlobError:
    return CorruptBlobError(
        f"blob {digest.short} goes on at {offset}, but {plural(nbytes, 'byte')} came",
        "ask how many are here, and go on from there",
    )


def _too_much(digest: Digest, most_nbytes: int) -> CapacityError:
    return CapacityError(
        f"blob {digest.short} is over {plural(most_nbytes, 'byte')}", "send it in smaller ones"
    )


def _cannot_write(error: OSError) -> InfraError:
    """The device's own trouble: another blob would not fit either."""
    return InfraError(
        f"cannot write a blob: {error.strerror}", "free some space in the device's --folder"
    )
