from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, CorruptBlobError, MissingBlobError, SettingsError

from device_server.store import BlobStore, StoreLimits


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
        with pytest.raises(CorruptBlobError, match="goes on at 2, but 1 bytes"):
            writer.append(2, b"b")


def test_an_abandoned_upload_leaves_nothing(tmp_path: Path) -> None:
    with BlobStore(tmp_path) as store:
        with store.write(Digest.of(b"ab")) as writer:
            writer.append(0, b"a")
        assert files(tmp_path) == []


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


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    with BlobStore(tmp_path), pytest.raises(SettingsError, match="folder of its own"):
        BlobStore(tmp_path)
    BlobStore(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot keep blobs"):
        BlobStore(tmp_path / "file")
