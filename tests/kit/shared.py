"""Where facts and real models outside the repository lie, if they do."""

from __future__ import annotations

from pathlib import Path


def shared_folder() -> Path | None:
    """The folder `shared` next to the repository, or None."""
    folder = Path(__file__).resolve().parents[3] / "shared"
    return folder if folder.is_dir() else None
