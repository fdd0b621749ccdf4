"""The identity of our own code: two machines that run one version of it give one digest."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest

PACKAGES: Final = ("compile_worker", "device_server", "driver", "tilefarm", "tuner")
"""All packages of ours, by name."""


def code_digest(*packages: str) -> Digest:
    """The digest of the Python sources of some packages of ours; of all of them if none is named.

    Raises:
        ImportError: one of them is not installed here.
    """
    return Digest.of_json(
        [
            [package, file.relative_to(folder).as_posix(), Digest.of(file.read_bytes()).hex]
            for package in sorted(packages or PACKAGES)
            for folder in (code_folder(package),)
            for file in _sources(folder)
        ]
    )


def code_folder(package: str) -> Path:
    """Where the Python sources of a package lie.

    Raises:
        ImportError: it is not installed here.
    """
    file = importlib.import_module(package).__file__
    if file is None:
        raise ImportError(f"{package} has no sources")
    return Path(file).parent


def _sources(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.py"))
