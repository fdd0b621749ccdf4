"""Bundles: files in one archive whose bytes depend on nothing but their names and contents."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, CorruptBlobError
from tilefarm.system_errors import unreadable

from driver.atomic_write import write_atomically

_DATE: Final = (1980, 1, 1, 0, 0, 0)
_PIECE_NBYTES: Final = 1 << 20


def packed(files: Mapping[str, Path], most_nbytes: int | None = None) -> bytes:
    """The archive of files under other names.

    Args:
        files: where they are, by name.
        most_nbytes: of the archive; what would not fit is not even read to its end.

    Raises:
        CapacityError: it would be larger.
        DataError: one cannot be read.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            entry = zipfile.ZipInfo(name, date_time=_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            try:
                entry.file_size = path.stat().st_size
                with path.open("rb") as source, archive.open(entry, "w") as packing:
                    while piece := source.read(_PIECE_NBYTES):
                        packing.write(piece)
                        _require_room(content, most_nbytes)
            except OSError as error:
                raise unreadable(path, error, "name a file that you can read") from None
    _require_room(content, most_nbytes)
    return content.getvalue()


def _require_room(content: io.BytesIO, most_nbytes: int | None) -> None:
    if most_nbytes is not None and content.tell() > most_nbytes:
        raise CapacityError(f"more than {most_nbytes >> 20} MiB, packed")


def unpack(content: bytes, digest: Digest, folder: Path) -> list[Path]:
    """Write the files of an archive below a folder, each whole or not at all; their paths.

    Raises:
        CorruptBlobError: the bytes are not those that the digest promises, or no bundle.
        OutputError: the folder cannot be written.
    """
    if Digest.of(content) != digest:
        raise CorruptBlobError(f"bundle {digest.short} arrived as another one", "fetch it again")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile:
        raise CorruptBlobError(f"bundle {digest.short} is no archive") from None
    with archive:
        names = archive.namelist()
        for name in names:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise CorruptBlobError(f"bundle {digest.short} has a file {name!r}, not below it")
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / name, archive.read(name))
    return [folder / name for name in names]
