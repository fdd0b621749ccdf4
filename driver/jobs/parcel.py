"""Parcels: files in one archive whose bytes depend on nothing but their names and contents."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, DataError

from driver.whole_file import write_whole

_DATE: Final = (1980, 1, 1, 0, 0, 0)


def packed(files: Mapping[str, Path]) -> bytes:
    """The archive of files under other names.

    Raises:
        DataError: one cannot be read.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            try:
                archive.writestr(entry, path.read_bytes())
            except OSError as error:
                raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    return content.getvalue()


def unpack(content: bytes, digest: Digest, folder: Path) -> list[Path]:
    """Write the files of an archive below a folder, each whole or not at all; their paths.

    Raises:
        CorruptBlobError: the bytes are not those that the digest promises, or no parcel.
        OutputError: the folder cannot be written.
    """
    if Digest.of(content) != digest:
        raise CorruptBlobError(f"parcel {digest.short} arrived as another one", "fetch it again")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise CorruptBlobError(f"parcel {digest.short} is no archive") from None
    with archive:
        names = archive.namelist()
        for name in names:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise CorruptBlobError(f"parcel {digest.short} has a file {name!r}, not below it")
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, archive.read(name))
    return [folder / name for name in names]
