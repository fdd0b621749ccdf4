"""The page of 50 models on 10 devices with a year of nights: to write it, and to open it."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from tilefarm.errors import InfraError

from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly.history_size import Scale, write_history
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.change_points import steps
from driver.jobs.nightly.page import write_site
from driver.jobs.nightly.reading import HistoryReader
from driver.jobs.nightly.words import row_file

_TIMES: Final = 5
_BROWSERS: Final = ("chromium", "google-chrome")
_FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--allow-file-access-from-files", "--dump-dom"),
)
_FRAME: Final = """<!doctype html><title></title>
<script>const began = performance.now()</script>
<iframe id=page width=1200 height=900 src="{page}"></iframe>
<script>
page.onload = () => {{
  const height = page.contentDocument.body.offsetHeight  // which lays the page out
  document.title = `${{performance.now() - began}} ms, ${{height}} pixels`
}}
</script>
"""


def page_figures(scale: Scale, folder: Path, seed: int) -> Iterator[Figure]:
    """Writes a history and its page into `folder`.

    Args:
        scale: how many nights.
        folder: an empty one.
        seed: of what is made up.

    Raises:
        InfraError: the browser fails.
    """
    path, site = folder / "history.sqlite", folder / "page"
    write_history(path, scale, seed)
    began = time.perf_counter()
    with History(path, read_only=True) as history:
        zoo = HistoryReader(history=history, steps=steps).zoo()
    read = time.perf_counter()
    front = write_site(zoo, site)
    what = f"page of {len(zoo.rows)} rows, {len(zoo.nights)} nights"
    yield Figure(name=f"{what}: to read the history", value=read - began, unit="s")
    yield Figure(name=f"{what}: to write all files", value=time.perf_counter() - read, unit="s")
    began = time.perf_counter()
    write_site(zoo, site)
    seconds = time.perf_counter() - began
    yield Figure(name=f"{what}: to write those of a night", value=seconds, unit="s")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        yield Figure(name=f"{what}: to open it: Chromium is not installed", value=0, unit="")
        return
    for name, page in (
        ("the front page", front),
        ("a row's page", site / "rows" / row_file(zoo.rows[0].row)),
    ):
        seconds = median(_opened(browser, page, folder) for _ in range(_TIMES))
        yield Figure(name=f"{what}: to open {name}", value=seconds, unit="s", goal=1.0)


def _opened(browser: str, page: Path, folder: Path) -> float:
    """Seconds from asking for a page until it is loaded and laid out.

    Raises:
        InfraError: the browser does not say.
    """
    frame = folder / "frame.html"
    frame.write_text(_FRAME.format(page=page.as_uri()))
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [browser, *_FLAGS, profile, frame.as_uri()], capture_output=True, text=True, check=False
    )
    said = re.search(r"<title>([0-9.]+) ms, [1-9][0-9]* pixels</title>", done.stdout)
    if said is None:
        raise InfraError(f"{browser} did not open {page.name}: {done.stderr.strip()[-300:]}")
    return float(said[1]) / 1000
