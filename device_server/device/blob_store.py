"""Blobs by digest in a folder: whole or absent, verified, bounded in size, oldest leave first.

A blob arrives in a folder beside this one and is renamed when its digest is right, so a crash
leaves no half of one. Nothing is synced to disk: a blob that a power cut damaged fails its
verification and is uploaded again. What a run or two will need and nobody afterwards is kept in
memory: a search makes thousands of artifacts, and a board's card is worn by every file. All methods
are thread-safe.
"""

from __future__ import annotations

import fcntl
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, MissingBlobError, SettingsError
from tilefarm.plural import plural

from device_server.device.memory_file import MemoryFile, code_may_lie_in_memory
from device_server.device.uploads import BlobWriter, IncomingBlobs

_NAME: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Caps of one store.

    Attributes:
        total_nbytes: of all blobs together, those on their way included.
        blob_nbytes: of one blob.
        blobs: how many; each is a file, and takes some memory of the server.
        in_memory: blobs that are in memory.
        in_memory_nbytes: of one of them.
    """

    total_nbytes: int = 2 << 30
    blob_nbytes: int = 512 << 20
    blobs: int = 1 << 15
    in_memory: int = 32
    in_memory_nbytes: int = 256 << 10


@dataclass(slots=True)
class _Entry:
    path: Path
    nbytes: int
    # (inode, mtime, size) of the file when its content was last verified.
    verified: tuple[int, int, int] | None = None
    # What the path is of; nobody can change that.
    memory: MemoryFile | None = None

    @property
    def is_verified(self) -> bool:
        """Whether its content was verified since it was last changed."""
        return self.memory is not None or _signature(self.path) == self.verified is not None


class BlobStore(Closing):
    """A folder of blobs that one process owns; a context manager.

    Raises:
        SettingsError: the folder cannot be used, or another process uses it.
    """

    def __init__(self, folder: Path, limits: StoreLimits | None = None) -> None:
        self.limits = limits or StoreLimits()
        folder = folder.absolute()  # Runners open blobs from working folders of their own.
        self._blobs = folder / "blobs"
        incoming = folder / "incoming"
        self._lock = threading.RLock()
        self._pins: Counter[Digest] = Counter()
        self._in_memory: OrderedDict[Digest, MemoryFile] = OrderedDict()
        self._memory_is_good = code_may_lie_in_memory()
        try:
            for place in (self._blobs, incoming):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owned = _own(folder / "owner")
        except OSError as error:
            raise SettingsError(
                f"cannot keep blobs in {folder}: {error.strerror}", "use another --folder"
            ) from None
        self._entries = self._found()
        self._nbytes = sum(entry.nbytes for entry in self._entries.values())
        self._incoming = IncomingBlobs(
            incoming,
            self._lock,
            blob_nbytes=self.limits.blob_nbytes,
            make_room=self._make_room,
            adopt=self._adopt,
        )

    def close(self) -> None:
        """Gives the folder up, and forgets what is in memory."""
        for digest in tuple(self._in_memory):
            self._drop(digest)
        self._owned.close()

    @property
    def nbytes(self) -> int:
        """Bytes of all blobs."""
        with self._lock:
            return self._nbytes

    def missing(self, digests: Iterable[Digest]) -> tuple[Digest, ...]:
        """Those of `digests` that are not here; the others count as used just now."""
        with self._lock:
            wanted = tuple(dict.fromkeys(digests))
            for digest in wanted:
                if digest in self._entries:
                    self._entries.move_to_end(digest)
            return tuple(digest for digest in wanted if digest not in self._entries)

    def put(self, content: bytes, digest: Digest | None = None) -> Digest:
        """Keeps bytes that are all here, and whose digest the caller has found, if it is given.

        Nobody else waits for that: neither while they are hashed nor while they are written.

        Raises:
            CapacityError: they do not fit.
        """
        digest = digest or Digest.of(content)
        if self.missing([digest]):
            self._incoming.take(digest, content)
        return digest

    def put_briefly(self, content: bytes, digest: Digest) -> None:
        """Keeps bytes that the next runs need; small ones in memory, until others come.

        Raises:
            CapacityError: they do not fit.
        """
        with self._lock:
            if not self.missing([digest]) or self._held(content, digest):
                return
        self._incoming.take(digest, content)

    def committed(self, digest: Digest, user: str = "") -> int:
        """Bytes that a user has sent of a blob that is not whole; an upload goes on from there."""
        return self._incoming.committed(digest, user)

    def write(self, digest: Digest, offset: int = 0, user: str = "") -> BlobWriter:
        """A user's writer for one blob, from an offset on; see `IncomingBlobs.begin`."""
        return self._incoming.begin(digest, offset, user)

    def path(self, digest: Digest) -> Path:
        """The file of a blob, its content verified since it was last changed, or pinned.

        Raises:
            MissingBlobError: it is not here, or was damaged and is now gone.
        """
        if not self._pins[digest]:
            self.verify(digest)
        with self._lock:
            return self._used(digest).path

    def unverified(self, digests: Iterable[Digest]) -> tuple[Digest, ...]:
        """Those whose content was not verified since their file was last changed."""
        with self._lock:
            here = [digest for digest in digests if digest in self._entries]
            return tuple(digest for digest in here if not self._entries[digest].is_verified)

    def verify(self, digest: Digest) -> None:
        """Reads a blob, if it is here and unverified. Nobody else waits for that.

        Raises:
            MissingBlobError: it was damaged, and is now gone.
        """
        entry = self._entries.get(digest)
        if entry is None or entry.is_verified:
            return
        signature = _signature(entry.path)
        try:
            right = signature is not None and Digest.of_file(entry.path) == digest
        except FileNotFoundError:
            right = False
        with self._lock:
            if right:
                entry.verified = signature
            elif self._entries.get(digest) is entry:
                self._drop(digest)
                raise MissingBlobError(
                    f"blob {digest.short} was damaged on this device", "upload it"
                )

    def nbytes_of(self, digest: Digest) -> int:
        """Bytes of one blob.

        Raises:
            MissingBlobError: it is not here.
        """
        with self._lock:
            if digest not in self._entries:
                raise _missing(digest)
            return self._entries[digest].nbytes

    @contextmanager
    def pinned(self, digests: Iterable[Digest]) -> Iterator[None]:
        """Within, none of these blobs leaves.

        Raises:
            MissingBlobError: one of them is not here.
        """
        held = tuple(digests)
        for digest in held:
            self.verify(digest)
        with self._lock:
            for digest in held:
                self._used(digest)
            self._pins.update(held)
        try:
            yield
        finally:
            with self._lock:
                for digest in held:
                    self._pins[digest] -= 1
                    if not self._pins[digest]:  # none of those that nobody pins is remembered
                        del self._pins[digest]

    def _used(self, digest: Digest) -> _Entry:
        """A blob that is used just now."""
        entry = self._entries.get(digest)
        if entry is None:
            raise _missing(digest)
        self._entries.move_to_end(digest)
        return entry

    def _held(self, content: bytes, digest: Digest) -> bool:
        """Keeps bytes in memory, if they may and can be there."""
        if not self._memory_is_good or len(content) > self.limits.in_memory_nbytes:
            return False
        while len(self._in_memory) >= self.limits.in_memory:
            leaving = next((other for other in self._in_memory if not self._pins[other]), None)
            if leaving is None:
                return False
            self._drop(leaving)
        self._make_room(len(content))
        try:
            memory = MemoryFile(content)
        except OSError:
            return False
        self._in_memory[digest] = memory
        self._entries[digest] = _Entry(memory.path, len(content), memory=memory)
        self._nbytes += len(content)
        return True

    def _adopt(self, digest: Digest, file: Path, nbytes: int) -> None:
        """Takes over a finished file whose digest was checked while it was written."""
        with self._lock:
            if digest in self._entries:
                file.unlink()
                return
            self._make_room(0)
            path = self._blobs / digest.hex
            file.rename(path)
            self._entries[digest] = _Entry(path, nbytes, _signature(path))
            self._nbytes += nbytes

    def _make_room(self, nbytes: int) -> None:
        """Let one more blob, or so many more bytes of one, be within the caps."""
        with self._lock:
            excess = self._nbytes + self._incoming.nbytes + nbytes - self.limits.total_nbytes
            surplus = len(self._entries) + 1 - self.limits.blobs
            leaving = []
            for digest, entry in self._entries.items():
                if excess <= 0 and surplus <= 0:
                    break
                if not self._pins[digest]:
                    leaving.append(digest)
                    excess -= entry.nbytes
                    surplus -= 1
            if excess > self._incoming.idle_nbytes or surplus > 0:
                raise CapacityError(
                    f"a blob of {plural(nbytes, 'byte')} does not fit: the store holds at most"
                    f" {plural(self.limits.total_nbytes, 'byte')} in {self.limits.blobs} blobs, and"
                    " the rest is in use",
                    "wait until runs and uploads have ended, or send less at a time",
                )
            for digest in leaving:
                self._drop(digest)
            self._incoming.give_up(excess)

    def _drop(self, digest: Digest) -> None:
        entry = self._entries.pop(digest)
        self._nbytes -= entry.nbytes
        if entry.memory is not None:
            del self._in_memory[digest]
            entry.memory.close()
        else:
            entry.path.unlink(missing_ok=True)

    def _found(self) -> OrderedDict[Digest, _Entry]:
        files = [path for path in self._blobs.iterdir() if _NAME.fullmatch(path.name)]
        files.sort(key=lambda path: path.stat().st_mtime_ns)
        return OrderedDict((Digest(path.name), _Entry(path, path.stat().st_size)) for path in files)


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


def _missing(digest: Digest) -> MissingBlobError:
    return MissingBlobError(f"blob {digest.short} is not on this device", "upload it")


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
