"""Retention: what is too old to be asked for leaves, and its room goes back to the disk."""

from __future__ import annotations

from dataclasses import dataclass

from driver.jobs.nightly.history import contents
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.history_file import HistoryFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How much has left."""

    nights: int = 0
    layers: int = 0
    contents: int = 0


def prune(history: History, *, nights: int, layers: int) -> Pruned:
    """Keeps the last `nights` nights, and of the last `layers` what each layer took.

    What was adopted and accepted stays, with the schedules of it. A history whose older nights
    are elsewhere too gets them back when the two are merged.

    Raises:
        OutputError: the file cannot be written, or the disk has no room for the smaller copy.
    """
    file = history.file
    with file.writing():
        (last,) = file.query("SELECT ifnull(max(place), 0) FROM nights")[0]
        gone = "(SELECT id FROM nights WHERE place <= ?)"
        oldest = last - nights
        for table in ("samples", "verdicts"):
            file.db.execute(f"DELETE FROM {table} WHERE night IN {gone}", (oldest,))
        _keep_last_kernels(file, oldest)
        left = file.db.execute(
            "DELETE FROM nights WHERE place <= ? AND id NOT IN (SELECT night FROM kernels)",
            (oldest,),
        ).rowcount
        thinned = file.db.execute(
            "UPDATE samples SET layers = NULL, costs = NULL"
            f" WHERE layers IS NOT NULL AND night IN {gone}",
            (last - layers,),
        ).rowcount
        dropped = _drop_contents(file)
    file.compact()
    return Pruned(nights=left, layers=thinned, contents=dropped)


def _keep_last_kernels(file: HistoryFile, oldest: int) -> None:
    """Of each schedule's kernels that are too old the last one stays: it is what is there still."""
    file.db.execute(
        "DELETE FROM kernels WHERE (target, schedule, night) IN ("
        " SELECT target, schedule, night FROM ("
        "  SELECT target, schedule, night, row_number() OVER ("
        "   PARTITION BY target, schedule ORDER BY place DESC) AS age"
        "  FROM kernels JOIN nights ON nights.id = night WHERE place <= ?) WHERE age > 1)",
        (oldest,),
    )


def _drop_contents(file: HistoryFile) -> int:
    """Deletes what nothing names any more; how many."""
    named = {
        number
        for table, columns in (
            ("samples", ("machine", "code", "schedules", "answers", "layers", "costs")),
            ("adoptions", ("schedules",)),
            ("kernels", ("target", "schedule", "kernel")),
        )
        for column in columns
        for (number,) in file.query(f"SELECT DISTINCT {column} FROM {table}")
    }
    sets = file.query(
        "SELECT DISTINCT schedules FROM samples UNION SELECT schedules FROM adoptions"
    )
    for (number,) in sets:
        named |= {file.id_of(one) for one in file.read(number, contents.read_set)}
    every = {number for (number,) in file.query("SELECT id FROM contents")}
    file.db.executemany("DELETE FROM contents WHERE id = ?", [(n,) for n in every - named])
    return len(every - named)
