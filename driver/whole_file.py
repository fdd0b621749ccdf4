"""Files that readers see old or new, never half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tilefarm.errors import OutputError


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file that readers see old or new, never half.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).chmod(mode)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror}",
            "free some space, or use another --out",
        ) from None
