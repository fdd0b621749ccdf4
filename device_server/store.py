"""Blobs by digest in a folder: whole or absent, verified, bounded in size, oldest leave first.

A blob is written to a temporary file and renamed when its digest is right, so a crash leaves no
half of one. Nothing is synced to disk: a blob that a power cut damaged fails its verification and
is uploaded again. All methods are thread-safe.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, CorruptBlobError, MissingBlobError, SettingsError

_READ_NBYTES: Final = 1 << 20
_NAME: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Caps: bytes of all blobs together and of one blob."""

    total_nbytes: int = 2 << 30
    blob_nbytes: int = 512 << 20


@dataclass(slots=True)
class _Entry:
    nbytes: int
    # (inode, mtime, size) of the file when its content was last verified.
    verified: tuple[int, int, int] | None = None


class BlobStore:
    """A folder of blobs that one process owns; a context manager.

    Raises:
        SettingsError: the folder cannot be used, or another process uses it.
    """

    def __init__(self, folder: Path, limits: StoreLimits | None = None) -> None:
        self.limits = limits or StoreLimits()
        folder = folder.absolute()  # Runners open blobs from working folders of their own.
        self._blobs = folder / "blobs"
        self._incoming = folder / "incoming"
        self._lock = threading.RLock()
        self._pins: Counter[Digest] = Counter()
        try:
            for place in (self._blobs, self._incoming):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owned = _own(folder / "owner")
        except OSError as error:
            raise SettingsError(f"cannot keep blobs in {folder}: {error.strerror}") from None
        for leftover in self._incoming.iterdir():
            leftover.unlink()
        self._entries = self._found()

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
        """Gives the folder up."""
        self._owned.close()

    @property
    def nbytes(self) -> int:
        """Bytes of all blobs."""
        with self._lock:
            return sum(entry.nbytes for entry in self._entries.values())

    def missing(self, digests: Iterable[Digest]) -> tuple[Digest, ...]:
        """Those of `digests` that are not here; the others count as used just now."""
        with self._lock:
            wanted = tuple(dict.fromkeys(digests))
            for digest in wanted:
                if digest in self._entries:
                    self._entries.move_to_end(digest)
            return tuple(digest for digest in wanted if digest not in self._entries)

    def put(self, content: bytes) -> Digest:
        """Keeps bytes that this process made.

        Raises:
            CapacityError: they do not fit.
        """
        digest = Digest.of(content)
        if not self.missing([digest]):
            return digest
        with self.write(digest) as writer:
            writer.append(0, content)
            writer.commit()
        return digest

    def write(self, digest: Digest) -> BlobWriter:
        """A writer for one blob."""
        return BlobWriter(self, digest, self._incoming)

    def path(self, digest: Digest) -> Path:
        """The file of a blob, its content verified since it was last changed.

        Raises:
            MissingBlobError: it is not here, or was damaged and is now gone.
        """
        with self._lock:
            entry = self._entries.get(digest)
            if entry is None:
                raise MissingBlobError(f"blob {digest.short} is not on this device", "upload it")
            self._entries.move_to_end(digest)
            path = self._blobs / digest.hex
            if entry.verified is None or _signature(path) != entry.verified:
                self._verify(digest, path, entry)
            return path

    def nbytes_of(self, digest: Digest) -> int:
        """Bytes of one blob.

        Raises:
            MissingBlobError: it is not here.
        """
        with self._lock:
            self.path(digest)
            return self._entries[digest].nbytes

    @contextmanager
    def pinned(self, digests: Iterable[Digest]) -> Iterator[None]:
        """Within, none of these blobs leaves.

        Raises:
            MissingBlobError: one of them is not here.
        """
        held = tuple(digests)
        with self._lock:
            for digest in held:
                self.path(digest)
            self._pins.update(held)
        try:
            yield
        finally:
            with self._lock:
                self._pins.subtract(held)

    def adopt(self, digest: Digest, file: Path, nbytes: int) -> None:
        """Takes over a finished file whose digest was checked while it was written."""
        with self._lock:
            if digest in self._entries:
                file.unlink()
                return
            self._make_room(nbytes)
            path = self._blobs / digest.hex
            file.rename(path)
            self._entries[digest] = _Entry(nbytes, _signature(path))

    def _make_room(self, nbytes: int) -> None:
        excess = self.nbytes + nbytes - self.limits.total_nbytes
        leaving = []
        for digest, entry in self._entries.items():
            if excess <= 0:
                break
            if not self._pins[digest]:
                leaving.append(digest)
                excess -= entry.nbytes
        if excess > 0:
            raise CapacityError(
                f"a blob of {nbytes} bytes does not fit: the store holds at most"
                f" {self.limits.total_nbytes} bytes and the rest is in use"
            )
        for digest in leaving:
            self._drop(digest)

    def _verify(self, digest: Digest, path: Path, entry: _Entry) -> None:
        signature = _signature(path)
        if signature is None or _digest_of(path) != digest:
            self._drop(digest)
            raise MissingBlobError(f"blob {digest.short} was damaged on this device", "upload it")
        entry.verified = signature

    def _drop(self, digest: Digest) -> None:
        del self._entries[digest]
        (self._blobs / digest.hex).unlink(missing_ok=True)

    def _found(self) -> OrderedDict[Digest, _Entry]:
        files = [path for path in self._blobs.iterdir() if _NAME.fullmatch(path.name)]
        files.sort(key=lambda path: path.stat().st_mtime_ns)
        return OrderedDict((Digest(path.name), _Entry(path.stat().st_size)) for path in files)


class BlobWriter:
    """Takes one blob's bytes in order; `commit` keeps them, leaving without it forgets them."""

    def __init__(self, store: BlobStore, digest: Digest, incoming: Path) -> None:
        self._store = store
        self._digest = digest
        self._sha256 = hashlib.sha256()
        self._nbytes = 0
        number, name = tempfile.mkstemp(dir=incoming)
        self._file: IO[bytes] = os.fdopen(number, "wb")
        self._path = Path(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    @property
    def nbytes(self) -> int:
        """Bytes so far."""
        return self._nbytes

    def append(self, offset: int, data: bytes) -> None:
        """The next bytes.

        Raises:
            CorruptBlobError: they do not begin where the last ones ended.
            CapacityError: the blob is over its cap, or the disk is full.
        """
        if offset != self._nbytes:
            raise CorruptBlobError(
                f"blob {self._digest.short} goes on at {offset}, but {self._nbytes} bytes are here"
            )
        if self._nbytes + len(data) > self._store.limits.blob_nbytes:
            raise CapacityError(
                f"blob {self._digest.short} is over {self._store.limits.blob_nbytes} bytes"
            )
        self._sha256.update(data)
        self._nbytes += len(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise CapacityError(f"cannot write a blob: {error.strerror}") from None

    def commit(self) -> None:
        """The blob is complete.

        Raises:
            CorruptBlobError: its digest is another than was promised.
            CapacityError: it does not fit.
        """
        if self._sha256.hexdigest() != self._digest.hex:
            raise CorruptBlobError(
                f"blob {self._digest.short} arrived as {self._sha256.hexdigest()[:12]}"
                f" ({self._nbytes} bytes)",
                "send it again",
            )
        try:
            self._file.close()
        except OSError as error:
            raise CapacityError(f"cannot write a blob: {error.strerror}") from None
        self._path.chmod(0o400)
        self._store.adopt(self._digest, self._path, self._nbytes)


def _own(path: Path) -> IO[bytes]:
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise SettingsError(
            f"another device server keeps its blobs in {path.parent}",
            "give every device a folder of its own",
        ) from None
    return file


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _digest_of(path: Path) -> Digest:
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_NBYTES):
            sha256.update(piece)
    return Digest(sha256.hexdigest())
