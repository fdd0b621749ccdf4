"""A folder for as long as it is needed, where nobody has named one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilefarm.errors import InfraError


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A fresh folder, gone at the end.

    Raises:
        InfraError: there can be none, because the disk is full for example.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as error:
        raise InfraError(
            f"cannot make a temporary folder: {error.strerror or error}",
            "free some space, or name another place in TMPDIR",
        ) from None
    with folder as path:
        yield Path(path)
