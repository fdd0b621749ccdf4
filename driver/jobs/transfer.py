"""The way back from a cluster: what a job has made, as text in the log of another job.

Ray's interface takes files and gives none; a log is what can be read of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import CorruptBlobError, DataError

from driver.jobs.bundle import packed

_BEGIN: Final = "parcel"
_END: Final = "end of parcel"
_LINE_NBYTES: Final = 3 << 14
_PASSING: Final = ("-wal", "-shm", "-journal", ".lock", ".sqlite.copy", ".sqlite.since")
"""What is beside a file of records while somebody writes it."""


def lines_of(folder: Path) -> Iterator[str]:
    """A folder's files as lines of ASCII: a headline with the digest, the content, an end.

    Raises:
        DataError: there are none, or one cannot be read.
    """
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith(_PASSING)
    }
    if not files:
        raise DataError(f"{folder}: nothing is there", "the job has ended before it began its run")
    content = packed(files)
    yield f"{_BEGIN} {Digest.of(content)}"
    for at in range(0, len(content), _LINE_NBYTES):
        yield base64.b64encode(content[at : at + _LINE_NBYTES]).decode()
    yield _END


def content_of(log: str) -> tuple[Digest, bytes]:
    """The digest that a log promises and the bytes that are in it, which the caller compares.

    Raises:
        CorruptBlobError: there is no whole bundle in it.
    """
    lines = iter(log.splitlines())
    headline = next((line for line in lines if line.startswith(f"{_BEGIN} ")), None)
    body = list(lines)
    if headline is None or _END not in body:
        raise CorruptBlobError("the cluster's answer ends before its bundle does", "fetch it again")
    try:
        digest = Digest(headline.removeprefix(f"{_BEGIN} "))
        encoded = body[: body.index(_END)]
        return digest, b"".join(base64.b64decode(line, validate=True) for line in encoded)
    except (ValueError, binascii.Error) as error:
        raise CorruptBlobError(f"the cluster's answer is no bundle: {error}") from None
