"""The last step of a night: its page, and what machines read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from driver.atomic_write import write_atomically
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.change_points import steps
from driver.jobs.nightly.night.events import Annotation, NightEvent, NightNotice
from driver.jobs.nightly.night.row_folder import night_folder
from driver.jobs.nightly.outputs import (
    github_annotations,
    junit_xml,
    metrics_text,
    step_summary,
    webhook_body,
)
from driver.jobs.nightly.page import write_site
from driver.jobs.nightly.reading import HistoryReader
from driver.jobs.nightly.records import Night, Row

PAGE: Final = "page"
"""The folder of the page, in that of the zoo."""
_PUBLISHED: Final = "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What is written beside the page; None and False for what nobody wants.

    Attributes:
        junit, prometheus, webhook, markdown: files.
        github: annotations of a GitHub workflow are among the lines that are told.
    """

    junit: Path | None = None
    prometheus: Path | None = None
    webhook: Path | None = None
    markdown: Path | None = None
    github: bool = False


def publish(
    history: History,
    night: str,
    rows: Sequence[Row],
    folder: Path,
    outputs: Outputs,
    checkout: Path | None,
) -> Iterator[NightEvent]:
    """Write everything; what is to be told, the place of the page first.

    Args:
        night: its name.
        rows: in the order of the page.
        folder: of the zoo.
        checkout: of the code that was measured, to name its commits; None without one.

    Raises:
        OutputError: something cannot be written; the same command writes it.
    """
    zoo = HistoryReader(history=history, checkout=checkout, steps=steps).zoo(rows)
    this = next(each for each in zoo.nights if each.name == night)
    yield NightNotice(text=f"page {write_site(zoo, folder / PAGE)}")
    for path, made in (
        (outputs.junit, junit_xml),
        (outputs.prometheus, metrics_text),
        (outputs.webhook, webhook_body),
        (outputs.markdown, step_summary),
    ):
        if path is not None:
            content = made(zoo, this)
            write_atomically(path, content if isinstance(content, bytes) else content.encode())
    if outputs.github:
        yield from (Annotation(text=line) for line in github_annotations(zoo, this))
    _mark(night_folder(folder, night))


def _mark(night: Path) -> None:
    """Note that a night is published, where it has left a folder."""
    if night.is_dir():
        write_atomically(night / _PUBLISHED, b"")


def is_published(folder: Path, night: Night) -> bool:
    """Whether nothing is left to do of a night that has ended; `folder` is that of the zoo."""
    place = night_folder(folder, night.name)
    return not place.is_dir() or (place / _PUBLISHED).exists()
