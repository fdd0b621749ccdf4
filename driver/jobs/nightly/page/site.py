"""The whole page as files: each is there whole, or as it was before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.jobs.nightly.page.feed import feed, nights_json
from driver.jobs.nightly.page.front import front_page
from driver.jobs.nightly.page.night_page import night_page
from driver.jobs.nightly.page.row_page import row_page
from driver.jobs.nightly.words import night_file, row_file
from driver.jobs.nightly.zoo_history import ZooHistory


def write_site(zoo: ZooHistory, folder: Path) -> Path:
    """Writes all files; the first page. Nights that have their page keep it, but for the last two.

    Raises:
        OutputError: the folder cannot be written; what was there is as it was, file by file.
    """
    try:
        for sub in ("rows", "nights"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error, "choose another folder") from None
    for name, content in _files(zoo, folder):
        write_atomically(folder / name, content)
    return folder / "index.html"


def _files(zoo: ZooHistory, folder: Path) -> Iterator[tuple[str, bytes]]:
    yield from ((f"rows/{row_file(h.row)}", row_page(h).encode()) for h in zoo.rows)
    for at, night in enumerate(zoo.nights):
        name = f"nights/{night_file(night.name)}"
        if at >= len(zoo.nights) - 2 or not (folder / name).exists():
            yield name, night_page(zoo, night).encode()
    yield "feed.xml", feed(zoo)
    yield "nights.json", nights_json(zoo).encode()
    yield "index.html", front_page(zoo).encode()
