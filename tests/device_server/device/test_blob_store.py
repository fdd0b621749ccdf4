"""Artifacts on disk: whole, in pieces, or refused."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.digest import Digest
from tilefarm.errors import (
    CapacityError,
    CorruptBlobError,
    InfraError,
    MissingBlobError,
    SettingsError,
)

from device_server.device.blob_store import BlobStore, StoreLimits
from device_server.device.memory_file import code_may_lie_in_memory
from device_server.device.secret import device_secret


def files(folder: Path) -> list[Path]:
    return sorted(path for name in ("blobs", "incoming") for path in (folder / name).iterdir())


def test_what_is_put_can_be_read(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        digest = store.put(b"content")
        assert digest == Digest.of(b"content")
        assert store.path(digest).read_bytes() == b"content"
        assert store.nbytes_of(digest) == 7
        assert store.missing([digest, Digest.of(b"other")]) == (Digest.of(b"other"),)


def test_paths_hold_in_every_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with BlobStore(Path("mine")) as store:
        digest = store.put(b"content")
        assert store.path(digest).is_absolute()
        assert store.path(digest).is_relative_to(tmp_path)


def test_blobs_survive_the_process(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        digest = store.put(b"content")
        (tmp_path / "incoming" / "half a blob").write_bytes(b"cont")
        (tmp_path / "blobs" / "README").write_text("not a blob")
    with BlobStore(tmp_path) as store:
        assert store.path(digest).read_bytes() == b"content"
        assert store.nbytes == 7
    assert not list((tmp_path / "incoming").iterdir())


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_pieces_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    content = b"".join(parts)
    with (
        BlobStore(tmp_path_factory.mktemp("store")) as store,
        store.write(Digest.of(content)) as writer,
    ):
        for part in parts:
            writer.append(writer.nbytes, part)
        writer.commit()
        assert store.path(Digest.of(content)).read_bytes() == content


def test_other_bytes_than_promised_leave_nothing(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        with store.write(Digest.of(b"promised")) as writer:
            writer.append(0, b"delivered")
            with pytest.raises(CorruptBlobError, match="send it again"):
                writer.commit()
        assert files(tmp_path) == []


def test_a_jump_in_the_offset_is_refused(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store, store.write(Digest.of(b"ab")) as writer:
        writer.append(0, b"a")
        with pytest.raises(CorruptBlobError, match="goes on at 2, but 1 byte came"):
            writer.append(2, b"b")


def test_an_upload_that_was_cut_short_goes_on_where_it_ended(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store:
        with store.write(digest) as writer:
            writer.append(0, b"ab")
        assert store.committed(digest) == 2
        assert store.missing([digest]) == (digest,)
        with pytest.raises(CorruptBlobError, match="goes on at 1, but 2 bytes came") as told:
            store.write(digest, 1)
        assert "ask how many" in told.value.hint
        with store.write(digest, 2) as writer:
            writer.append(2, b"c")
            writer.commit()
        assert store.path(digest).read_bytes() == b"abc"
        assert store.nbytes_of(digest) == 3
        assert not list((tmp_path / "incoming").iterdir())


def test_an_upload_outlives_the_process(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store, store.write(digest) as writer:
        writer.append(0, b"ab")
    with BlobStore(tmp_path) as store:
        assert store.committed(digest) == 2
        assert store.missing([digest]) == (digest,)
        with store.write(digest, 2) as writer:
            writer.append(2, b"c")
            writer.commit()
        assert store.path(digest).read_bytes() == b"abc"
    assert not list((tmp_path / "incoming").iterdir())


def test_what_a_crash_damaged_of_an_upload_is_noticed_in_the_end(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store, store.write(digest) as writer:
        writer.append(0, b"ab")
    (tmp_path / "incoming" / digest.hex).write_bytes(b"a\0")
    with BlobStore(tmp_path) as store:
        with store.write(digest, 2) as writer:
            writer.append(2, b"c")
            with pytest.raises(CorruptBlobError, match="send it again"):
                writer.commit()
        assert store.committed(digest) == 0
    assert files(tmp_path) == []


def test_of_what_an_earlier_process_left_the_oldest_is_forgotten(tmp_path: Path) -> None:
    digests = [Digest.of(bytes([number])) for number in range(3)]
    with BlobStore(tmp_path) as store:
        for age, digest in enumerate(digests):
            with store.write(digest) as writer:
                writer.append(0, b"x" * 5)
            os.utime(tmp_path / "incoming" / digest.hex, ns=(age, age))
    with BlobStore(tmp_path, StoreLimits(blob_nbytes=10)) as store:
        assert [store.committed(digest) for digest in digests] == [0, 5, 5]
    assert len(list((tmp_path / "incoming").iterdir())) == 2


def test_an_upload_may_begin_anew(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store:
        with store.write(digest) as writer:
            writer.append(0, b"xy")
        with store.write(digest) as writer:
            assert store.committed(digest) == 0
            writer.append(0, b"abc")
            writer.commit()
        assert store.path(digest).read_bytes() == b"abc"
        assert not list((tmp_path / "incoming").iterdir())


def test_bytes_that_are_not_those_of_the_blob_are_forgotten(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store:
        with store.write(digest) as writer:
            writer.append(0, b"ax")
        with store.write(digest, 2) as writer:
            writer.append(2, b"c")
            with pytest.raises(CorruptBlobError):
                writer.commit()
        assert store.committed(digest) == 0
        assert files(tmp_path) == []


def test_a_writer_whose_connection_is_dead_loses_the_blob_to_the_next(tmp_path: Path) -> None:
    digest = Digest.of(b"abc")
    with BlobStore(tmp_path) as store, store.write(digest) as dead:
        dead.append(0, b"ab")
        with store.write(digest, store.committed(digest)) as alive:
            with pytest.raises(CorruptBlobError, match="another upload"):
                dead.append(2, b"c")
            alive.append(2, b"c")
            with pytest.raises(CorruptBlobError, match="another upload"):
                dead.commit()
            alive.commit()
        assert store.path(digest).read_bytes() == b"abc"


def test_of_uploads_that_were_cut_short_the_oldest_are_forgotten(tmp_path: Path) -> None:
    digests = [Digest.of(bytes([number])) for number in range(20)]
    with BlobStore(tmp_path, StoreLimits(blob_nbytes=100)) as store:
        for digest in digests:
            with store.write(digest) as writer:
                writer.append(0, b"x" * 5)
        assert [digest for digest in digests if store.committed(digest)] == digests[4:]
        with store.write(Digest.of(b"large")) as writer:
            writer.append(0, b"x" * 90)
        assert [digest for digest in digests if store.committed(digest)] == digests[18:]
        assert len(list((tmp_path / "incoming").iterdir())) == 3


def test_a_damaged_blob_is_gone_and_can_be_uploaded_again(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        digest = store.put(b"content")
        path = store.path(digest)
        path.chmod(0o600)
        path.write_bytes(b"Content")
        os.utime(path, ns=(1, 1))
        with pytest.raises(MissingBlobError, match="damaged"):
            store.path(digest)
        assert store.missing([digest]) == (digest,)
        store.put(b"content")
        assert store.path(digest).read_bytes() == b"content"


def test_a_blob_that_was_damaged_while_nobody_looked_is_found_out(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        path = store.path(store.put(b"content"))
    path.chmod(0o600)
    path.write_bytes(b"Content")
    with BlobStore(tmp_path) as store, pytest.raises(MissingBlobError, match="damaged"):
        store.path(Digest.of(b"content"))


def test_the_blob_that_was_not_used_for_longest_leaves_first(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(total_nbytes=30, blob_nbytes=20)) as store:
        a, b, c = (store.put(letter * 10) for letter in (b"a", b"b", b"c"))
        store.path(a)
        store.put(b"d" * 10)
        assert store.missing([a, b, c]) == (b,)
        store.put(b"e" * 20)
        assert store.nbytes <= 30


def test_a_pinned_blob_stays(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(total_nbytes=20, blob_nbytes=20)) as store:
        a, b = store.put(b"a" * 10), store.put(b"b" * 10)
        with store.pinned([a]):
            store.put(b"c" * 10)
            assert store.missing([a, b]) == (b,)
            with pytest.raises(CapacityError, match="in use"):
                store.put(b"d" * 20)
            assert store.missing([a]) == ()
        store.put(b"d" * 20)


def test_a_blob_over_its_cap_is_refused_while_it_arrives(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(total_nbytes=100, blob_nbytes=4)) as store:
        with store.write(Digest.of(b"abcdef")) as writer:
            writer.append(0, b"abc")
            with pytest.raises(CapacityError, match="over 4 bytes"):
                writer.append(3, b"def")
        assert files(tmp_path) == []


def fill(folder: Path) -> None:
    """No room is left for what this process has open in a folder."""
    full = os.open("/dev/full", os.O_WRONLY)
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # of the listing itself
            if link.readlink().parent == folder:
                os.dup2(full, int(link.name))
    os.close(full)


@pytest.mark.parametrize("pieces", [[b"x"], [b"x", b"y" * 100_000]])
def test_a_full_disk_is_a_reason_and_leaves_nothing(pieces: list[bytes], tmp_path: Path) -> None:
    content = b"".join(pieces)

    def upload() -> None:
        with store.write(Digest.of(content)) as writer:
            fill(tmp_path / "incoming")
            for piece in pieces:
                writer.append(writer.nbytes, piece)
            writer.commit()

    with BlobStore(tmp_path) as store:
        with pytest.raises(InfraError, match="No space left") as told:
            upload()
        assert not isinstance(told.value, CapacityError), "another device could take it"
        assert "--folder" in told.value.hint
        assert not files(tmp_path)
        assert store.put(content)


def test_a_store_whose_folder_has_gone_says_so(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        (tmp_path / "incoming").rmdir()
        with pytest.raises(InfraError, match="cannot write a blob"):
            store.put(b"content")


def test_a_secret_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    secret = device_secret(tmp_path)
    assert len(secret) == 32
    assert device_secret(tmp_path) == secret
    (tmp_path / "secret").write_bytes(secret[:7])
    assert len(device_secret(tmp_path)) == 32
    with pytest.raises(SettingsError, match="cannot keep the device's secret"):
        device_secret(tmp_path / "nosuch")


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with BlobStore(tmp_path), pytest.raises(SettingsError, match="folder of its own"):
        BlobStore(tmp_path)
    BlobStore(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot keep blobs"):
        BlobStore(tmp_path / "file")


def test_a_whole_blob_on_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fill)
    with (
        BlobStore(tmp_path) as store,
        pytest.raises(InfraError, match="cannot write a blob: No space left on device"),
    ):
        store.put(b"content")
    assert files(tmp_path) == []


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Says when it begins to write a blob, and goes on when it is told to."""
    begun, goes_on = threading.Event(), threading.Event()
    write_bytes = Path.write_bytes

    def slow(path: Path, data: bytes) -> int:
        begun.set()
        assert goes_on.wait(60.0)
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", slow)
    return begun, goes_on


def test_nobody_waits_for_a_blob_that_is_written_and_its_room_is_taken(
    tmp_path: Path, slow_disk: tuple[threading.Event, threading.Event]
) -> None:
    begun, goes_on = slow_disk
    limits = StoreLimits(total_nbytes=10)
    with BlobStore(tmp_path, limits) as store, ThreadPoolExecutor(1) as thread:
        putting = thread.submit(store.put, b"six666")
        assert begun.wait(60.0)
        try:
            assert store.missing([Digest.of(b"six666")]) == (Digest.of(b"six666"),)
            with pytest.raises(CapacityError):
                store.put(b"five5")
            with store.write(Digest.of(b"four")) as writer:
                writer.append(0, b"four")
                writer.commit()
            assert not goes_on.is_set()
            assert not putting.done()
        finally:
            goes_on.set()
        assert putting.result() == Digest.of(b"six666")
        assert store.nbytes == 10


def test_bytes_of_all_blobs_are_counted_as_they_come_and_go(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(total_nbytes=10)) as store:
        for content in (b"four", b"five5", b"four", b"six666"):
            store.put(content)
            assert store.nbytes == sum(path.stat().st_size for path in files(tmp_path))
        assert store.nbytes == 10
    with BlobStore(tmp_path) as store:
        assert store.nbytes == 10


def test_what_is_put_briefly_is_a_blob_but_no_file(tmp_path: Path) -> None:
    digest = Digest.of(b"code")
    with BlobStore(tmp_path) as store:
        store.put_briefly(b"code", digest)
        assert store.missing([digest]) == ()
        assert store.path(digest).read_bytes() == b"code"
        assert (store.nbytes_of(digest), store.nbytes) == (4, 4)
        assert files(tmp_path) == []
        store.put_briefly(b"code", digest)
        assert store.put(b"code") == digest
        with store.write(digest) as writer:
            writer.append(0, b"code")
            writer.commit()
        assert files(tmp_path) == []
        assert store.nbytes == 4
    with BlobStore(tmp_path) as store:
        assert store.missing([digest]) == (digest,)


def test_nobody_can_change_what_is_in_memory(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        store.put_briefly(b"code", digest := Digest.of(b"code"))
        for mode in ("r+b", "ab"):
            with pytest.raises(PermissionError), store.path(digest).open(mode) as file:
                file.write(b"other")
        with pytest.raises(PermissionError):
            os.truncate(store.path(digest), 1)


def briefly(store: BlobStore, number: int) -> Digest:
    content = b"code %d" % number
    store.put_briefly(content, digest := Digest.of(content))
    return digest


def test_few_blobs_are_in_memory_and_the_oldest_leave(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with BlobStore(tmp_path, StoreLimits(in_memory=2)) as store:
        first, second = briefly(store, 1), briefly(store, 2)
        with store.pinned([first]):
            third = briefly(store, 3)
            assert store.missing([first, second, third]) == (second,)
            with store.pinned([third]):
                fourth = briefly(store, 4)
                assert [path.name for path in files(tmp_path)] == [fourth.hex]
        assert store.nbytes == 18
        fifth = briefly(store, 5)
        assert store.missing([first, third, fourth, fifth]) == (first,)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_large_blobs_are_never_in_memory(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(in_memory_nbytes=3)) as store:
        store.put_briefly(b"code", digest := Digest.of(b"code"))
        assert [path.name for path in files(tmp_path)] == [digest.hex]


def test_blobs_in_memory_count_as_well(tmp_path: Path) -> None:
    with BlobStore(tmp_path, StoreLimits(total_nbytes=10, blob_nbytes=10)) as store:
        old = store.put(b"12345")
        store.put_briefly(b"12345678", new := Digest.of(b"12345678"))
        assert store.missing([old, new]) == (old,)
        with store.pinned([new]), pytest.raises(CapacityError):
            store.put_briefly(b"abc", Digest.of(b"abc"))


def test_where_code_may_not_lie_in_memory_it_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(errno.EACCES, "memfd is not executable here")

    monkeypatch.setattr(os, "memfd_create", refused)
    with BlobStore(tmp_path) as store:
        digest = briefly(store, 1)
        assert [path.name for path in files(tmp_path)] == [digest.hex]
    assert not code_may_lie_in_memory()


def test_without_a_descriptor_left_it_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BlobStore(tmp_path) as store:

        def refused(*_: object) -> int:
            raise OSError(errno.EMFILE, "too many open files")

        monkeypatch.setattr(os, "memfd_create", refused)
        digest = briefly(store, 1)
        assert [path.name for path in files(tmp_path)] == [digest.hex]
