"""What each night's code has made of each schedule, kept only where it is another than before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilefarm.digest import Digest

from driver.jobs.nightly.history import contents
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.records import ChosenSchedule

_LATEST = """
    SELECT kernel FROM kernels JOIN nights ON nights.id = kernels.night
    WHERE target = ? AND schedule = ?
        AND place <= (SELECT place FROM nights WHERE name = ?)
    ORDER BY place DESC LIMIT 1
"""


def keep_kernels(
    history: History, night: str, target: Digest, kernels: Mapping[ChosenSchedule, bytes]
) -> int:
    """Keeps what a night's code has made of schedules that are kept; how many were news.

    Args:
        target: what they were compiled for.

    Raises:
        ValueError: the night has not begun, or a schedule is not kept: a fault of ours.
    """
    file, news = history.file, 0
    with file.writing():
        aim = file.keep(target.hex.encode())
        for chosen, content in kernels.items():
            schedule = file.id_of(Digest.of(contents.schedule_content(chosen)))
            kernel = file.keep(content)
            if file.query(_LATEST, aim, schedule, night) != [(kernel,)]:
                news += 1
                file.db.execute(
                    "INSERT OR REPLACE INTO kernels (target, schedule, night, kernel)"
                    " VALUES (?, ?, ?, ?)",
                    (aim, schedule, file.night_id(night), kernel),
                )
    return news


def kept_kernels(
    history: History, night: str, target: Digest, schedules: Iterable[ChosenSchedule]
) -> dict[ChosenSchedule, bytes]:
    """What a night's code, or the last one before it, has made of these, as far as is known."""
    file = history.file
    found: dict[ChosenSchedule, bytes] = {}
    aim = file.known_id(Digest.of(target.hex.encode()))
    if aim is None:
        return found
    for chosen in schedules:
        schedule = file.known_id(Digest.of(contents.schedule_content(chosen)))
        rows = [] if schedule is None else file.query(_LATEST, aim, schedule, night)
        if rows:
            found[chosen] = file.content(rows[0][0])
    return found
