"""The history of a zoo's nights: what they measured, with what, and the verdicts.

One process measures a night; any number read it meanwhile, and somebody may accept a verdict. What
is added is there whole or not at all, and adding it again changes nothing: a night that was killed
asks what is there, and does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import OutputError

from driver.jobs.nightly.history import contents
from driver.jobs.nightly.history.history_file import HistoryFile
from driver.jobs.nightly.history.night_order import night_name
from driver.jobs.nightly.records import (
    Acceptance,
    Adoption,
    ChosenSchedule,
    Judged,
    LayerSample,
    Night,
    Pass,
    Row,
    Sample,
    SampleTime,
    Verdict,
)
from tuner.database import locked

_SAMPLES: Final = """
    SELECT nights.name, rows.model, rows.target, part, machine, code, schedules, answers, layers,
        costs, cost, low, high, again, control, samples.ended
    FROM samples JOIN nights ON nights.id = samples.night JOIN rows ON rows.id = samples.row
"""
_KEEP_SAMPLE: Final = """
    INSERT INTO samples (night, row, part, machine, code, schedules, answers, layers, costs, cost,
        low, high, again, control, ended)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_VERDICTS: Final = """
    SELECT nights.name, rows.model, rows.target, verdict, change, against, why
    FROM verdicts JOIN nights ON nights.id = verdicts.night JOIN rows ON rows.id = verdicts.row
"""
_ADOPTIONS: Final = """
    SELECT model, target, night, schedules, who, at FROM adoptions JOIN rows ON rows.id = row
"""
_ACCEPTANCES: Final = """
    SELECT model, target, night, who, at, why FROM acceptances JOIN rows ON rows.id = row
"""


class History(Closing):
    """What is known of a zoo. A context manager.

    Args:
        path: the file; a writer makes it.
        zoo: the name of the zoo; "" takes whatever zoo it is of.
        read_only: nothing is made or changed.

    Raises:
        OutputError: it is the history of another zoo, no history, one of a newer version, damaged,
            or cannot be opened.
    """

    def __init__(self, path: Path, zoo: str = "", *, read_only: bool = False) -> None:
        self._file = HistoryFile(path, read_only=read_only)
        try:
            if zoo and not read_only:
                with self._file.writing():
                    self._file.db.execute(
                        "INSERT INTO zoo SELECT ? WHERE NOT EXISTS (SELECT * FROM zoo)", (zoo,)
                    )
            self.require_zoo(zoo)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Lets go of the file. Closing twice is closing once."""
        self._file.close()

    @property
    def file(self) -> HistoryFile:
        """Where it is kept; for what this folder does with whole files."""
        return self._file

    @property
    def zoo(self) -> str:
        """The name of the zoo; "" in a new file that nobody has told it."""
        names = self._file.query("SELECT name FROM zoo")
        return str(names[0][0]) if names else ""

    def require_zoo(self, zoo: str) -> None:
        """Raises OutputError where this is the history of another one."""
        if zoo and self.zoo not in ("", zoo):
            raise OutputError(
                f"{self._file.path} is the history of zoo {self.zoo!r}, not of {zoo!r}",
                "choose another folder, or the zoo's former name",
            )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else measures a night of this history meanwhile.

        Raises:
            OutputError: somebody does.
        """
        with locked(self._file.path):
            yield

    # Nights.

    def begin(self, now: float) -> Night:
        """A new night, after all that are there, whatever the clock tells.

        Args:
            now: wall seconds.
        """
        with self._file.writing():
            last = self._file.query("SELECT name, place FROM nights ORDER BY place DESC LIMIT 1")
            after, place = last[0] if last else ("", 0)
            seconds = now
            while self._file.query("SELECT 1 FROM nights WHERE name = ?", night_name(seconds)):
                seconds += 1.0  # two of one name would be one night
            night = Night(name=night_name(seconds), zoo=self.zoo, began=now, after=after)
            self._file.db.execute(
                "INSERT INTO nights (name, began, why_ended, after, place) VALUES (?, ?, '', ?, ?)",
                (night.name, night.began, night.after, place + 1),
            )
        return night

    def end(self, night: str, now: float, why: str = "") -> None:
        """Nothing more comes of a night.

        Args:
            night: its name.
            now: wall seconds.
            why: empty if everything was done; else what stopped it, in words.
        """
        with self._file.writing():
            self._file.db.execute(
                "UPDATE nights SET ended = ?, why_ended = ? WHERE name = ?", (now, why, night)
            )

    def nights(self) -> list[Night]:
        """All of them, the oldest first."""
        return self._file.nights(self.zoo)

    def rows(self) -> list[Row]:
        """Those that any night has a sample or a verdict of."""
        return sorted(Row(*names) for names in self._file.query("SELECT model, target FROM rows"))

    # What was measured.

    def keep(self, schedules: Iterable[ChosenSchedule]) -> Digest:
        """The digest of a set of schedules, which is kept for samples and adoptions of it."""
        with self._file.writing():
            each = [contents.schedule_content(one) for one in schedules]
            for content in each:
                self._file.keep(content)
            whole = contents.set_content(map(Digest.of, each))
            self._file.keep(whole)
        return Digest.of(whole)

    def schedules(self, digest: Digest) -> tuple[ChosenSchedule, ...]:
        """A set that was kept, by the names of the workloads.

        Raises:
            ValueError: it was not.
        """
        each = self._file.read(self._file.id_of(digest), contents.read_set)
        found = [self._file.read(self._file.id_of(one), contents.read_schedule) for one in each]
        return tuple(sorted(found, key=lambda one: (one.workload.name, one.trace.to_json())))

    def schedule_sets(self) -> list[Digest]:
        """All that a sample or an adoption names, by digest."""
        found = self._file.query(
            "SELECT schedules FROM samples UNION SELECT schedules FROM adoptions"
        )
        return sorted(self._file.read(number, Digest.of) for (number,) in found)

    def add(self, sample: Sample) -> bool:
        """Keeps a sample; whether the night had none of its row, pass and machine.

        Raises:
            ValueError: its night has not begun, or its schedules were not kept: a fault of ours.
        """
        time, keep = sample.time, self._file.keep
        with self._file.writing():
            layers, costs = None, None
            if time.layers:
                names, numbers = contents.layers_contents(time.layers, sample.machine.clock)
                layers, costs = keep(names), keep(numbers)
            values = (
                self._file.night_id(sample.night),
                self._file.row_id(sample.row),
                sample.part.value,
                keep(contents.machine_content(sample.machine)),
                keep(contents.order_content(sample.order)),
                self._file.id_of(sample.schedules),
                keep(contents.answers_content(sample.answers)),
                layers,
                costs,
                *(time.cost, time.low, time.high, time.again, time.control, time.ended),
            )
            return self._file.db.execute(_KEEP_SAMPLE, values).rowcount == 1

    def samples(
        self,
        *,
        night: str | None = None,
        row: Row | None = None,
        last: int | None = None,
        layers: bool = False,
    ) -> list[Sample]:
        """Those of a night, of a row, or all; the oldest night first, in it the known schedules'.

        Args:
            night: its name.
            row: of the zoo.
            last: of so many nights in the end alone.
            layers: whether they are read too, which takes the most of the time.
        """
        order = "ORDER BY place, model, target, part DESC, machine"
        rows = self._selected(_SAMPLES, night, row, last, order)
        return [self._sample(*values, wanted=layers) for values in rows]

    def _selected(
        self, sql: str, night: str | None, row: Row | None, last: int | None, order: str
    ) -> list[tuple[Any, ...]]:
        """The rows of a table of nights and rows."""
        where, values = ["TRUE"], list[object]()
        if night is not None:
            where.append("nights.name = ?")
            values.append(night)
        if row is not None:
            where += ["rows.model = ?", "rows.target = ?"]
            values += [row.model, row.target]
        if last is not None:
            where.append("place > (SELECT max(place) - ? FROM nights)")
            values.append(last)
        return self._file.query(f"{sql} WHERE {' AND '.join(where)} {order}", *values)

    def _sample(self, night: str, model: str, target: str, *values: Any, wanted: bool) -> Sample:
        part, machine, code, schedules, answers, layers, costs, *times = values
        cost, low, high, again, control, ended = times
        read, known = self._file.read, tuple[LayerSample, ...]()
        if wanted and layers is not None:
            content = self._file.content(costs)
            with self._file.decoding():
                known = contents.read_layers(self._file.content(layers), content)
        with self._file.decoding():
            time = SampleTime(
                cost=cost,
                low=low,
                high=high,
                again=again,
                control=control,
                layers=known,
                ended=ended,
            )
        return Sample(
            night=night,
            row=Row(model, target),
            part=Pass(part),
            order=read(code, contents.read_order),
            machine=read(machine, contents.read_machine),
            schedules=read(schedules, Digest.of),
            time=time,
            answers=read(answers, contents.read_answers),
        )

    # What is said of it.

    def judge(self, judged: Judged) -> None:
        """Keeps a verdict, in place of what the night said of the row before."""
        values = (
            *(judged.verdict.value, judged.change, judged.against, judged.why),
            *(judged.night, judged.row.model, judged.row.target),
        )
        with self._file.writing():
            self._file.row_id(judged.row)
            self._file.night_id(judged.night)
            self._file.db.execute(
                "INSERT OR REPLACE INTO verdicts (night, row, verdict, change, against, why)"
                " SELECT nights.id, rows.id, ?, ?, ?, ? FROM nights, rows"
                " WHERE nights.name = ? AND model = ? AND target = ?",
                values,
            )

    def verdicts(
        self, *, night: str | None = None, row: Row | None = None, last: int | None = None
    ) -> list[Judged]:
        """Those of a night, of a row, or all; the oldest night first. See `samples`."""
        rows = self._selected(_VERDICTS, night, row, last, "ORDER BY place, model, target")
        return [
            Judged(
                night=name,
                row=Row(model, target),
                verdict=Verdict(verdict),
                change=change,
                against=against,
                why=why,
            )
            for name, model, target, verdict, change, against, why in rows
        ]

    def adopt(self, adoption: Adoption) -> None:
        """Later nights compile these schedules for the row.

        Raises:
            ValueError: the schedules were not kept: a fault of ours.
        """
        with self._file.writing():
            self._file.db.execute(
                "INSERT OR IGNORE INTO adoptions (row, night, schedules, who, at)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    self._file.row_id(adoption.row),
                    adoption.night,
                    self._file.id_of(adoption.schedules),
                    adoption.who,
                    adoption.when,
                ),
            )

    def adoptions(self, row: Row | None = None) -> list[Adoption]:
        """Of a row, or all; the one that counts last."""
        found = [
            Adoption(
                row=Row(model, target),
                night=night,
                schedules=self._file.read(schedules, Digest.of),
                who=who,
                when=when,
            )
            for model, target, night, schedules, who, when in self._of_row(_ADOPTIONS, row)
        ]
        return self._by_night(found)

    def adopted(self, row: Row) -> Adoption | None:
        """The schedules that the next night compiles; None before the first ones."""
        found = self.adoptions(row)
        return found[-1] if found else None

    def accept(self, acceptance: Acceptance) -> None:
        """Later nights of the row are compared with this one."""
        with self._file.writing():
            self._file.db.execute(
                "INSERT OR IGNORE INTO acceptances (row, night, who, at, why)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    self._file.row_id(acceptance.row),
                    acceptance.night,
                    acceptance.who,
                    acceptance.when,
                    acceptance.why,
                ),
            )

    def acceptances(self, row: Row | None = None) -> list[Acceptance]:
        """Of a row, or all; the one that counts last."""
        found = [
            Acceptance(row=Row(model, target), night=night, who=who, when=when, why=why)
            for model, target, night, who, when, why in self._of_row(_ACCEPTANCES, row)
        ]
        return self._by_night(found)

    def _of_row(self, sql: str, row: Row | None) -> list[tuple[Any, ...]]:
        if row is None:
            return self._file.query(sql)
        where = " WHERE model = ? AND target = ?"
        return self._file.query(sql + where, row.model, row.target)

    def _by_night(self, found: Sequence[Any]) -> list[Any]:
        """In the order of their nights, then of their own time."""
        places = dict(self._file.query("SELECT name, place FROM nights"))
        return sorted(found, key=lambda each: (places.get(each.night, 0), each.when, each))
