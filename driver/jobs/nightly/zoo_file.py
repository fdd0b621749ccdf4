"""The file of a zoo, in TOML: which models are measured on which targets, for how long, and gates.

    name = "zoo"                     the history's name
    [night]                          seconds, rows at a time, folders of nights to keep
    [search]                         trials, seconds, least-gain: of a row
    [gate]                           percent more that passes: cycles, seconds
    [[target]]                       name, and options of `tilefarm tune` that say where it runs
    [[model]]                        name, file, calibrate, evaluate, sha256 of these, targets,
                                     score (the least), a search of its own, and options of
                                     `tilefarm tune` that say what it is

A model or target with a fault costs its rows alone, and a fault elsewhere the key that it is in;
each is one line with its place.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import read_toml
from tilefarm.errors import DataError
from tilefarm.printable import printable

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.records import Row
from driver.jobs.nightly.zoo_options import MODEL_OPTIONS, TARGET_OPTIONS, FaultError, words_of

_NIGHT: Final = {"seconds": (1.0, 7 * 86400.0), "rows": (1.0, 64.0), "keep": (1.0, 1e6)}
_SEARCH: Final = {"trials": (0.0, 1e6), "seconds": (1.0, 86400.0), "least-gain": (0.0, 100.0)}
_GATE: Final = {"cycles": (0.0, 100.0), "seconds": (0.0, 100.0)}
"""Keys of the tables of numbers, with the least and the most that each may be."""
_WHOLE: Final = frozenset({"rows", "keep", "trials"})
_SCORE: Final = (0.0, 100.0)
_FILES: Final = ("calibrate", "evaluate")
_OWN_MODEL: Final = ("name", "file", "sha256", *_FILES, "targets", "score", "search")
_OWN_TARGET: Final = ("name",)
_TOP: Final = ("name", "night", "search", "gate", "target", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """How much a night looks for better schedules of a row.

    Attributes:
        trials: beyond those that compare.
        seconds: after which it ends, whatever is left.
        least_gain: percent of the network's time; what could save less is not looked for.
    """

    trials: int = 32
    seconds: float = 600.0
    least_gain: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NightBudget:
    """What a whole night may take.

    Attributes:
        seconds: by the wall clock; rows that have no time left are not measured.
        rows: at a time.
        keep: nights whose folders stay; the history keeps all.
    """

    seconds: float = 8 * 3600.0
    rows: int = 1
    keep: int = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooRow:
    """A model on a target.

    Attributes:
        model: what `tilefarm tune` takes: a file, or a name such as zoo:resnet18.
        words: its options, without the search's.
        settings: (option, value) of those that say what the network computes, by name. What the
            file does not say is tilefarm's: another default of a later version is its doing.
        files: that it reads, with their digests where the zoo's file says them.
        gates: what it must keep.
        fault: why it cannot be measured; "" if nothing is wrong with what the zoo's file says.
    """

    row: Row
    model: str = ""
    words: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[Path, Digest | None], ...] = ()
    search: SearchBudget = field(default_factory=SearchBudget)
    gates: Gates = field(default_factory=Gates)
    fault: str = ""

    def trouble(self) -> str:
        """Why it cannot be measured now: its fault, a file that is not there or another; or ""."""
        return self.fault or next(filter(None, map(_trouble, self.files)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoo:
    """What the file says.

    Attributes:
        rows: each model on each of its targets, in the order of the file.
        faults: of the file beside its models and targets, a line each; what they are in is as if
            it were not there.
    """

    name: str
    night: NightBudget
    rows: tuple[ZooRow, ...]
    faults: tuple[str, ...] = ()


def read_zoo(path: Path) -> Zoo:
    """The zoo of a file.

    Raises:
        DataError: it cannot be read, is no TOML, or names no model on any target.
    """
    try:
        document = read_toml(path)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror}", "`tilefarm nightly --help` shows one"
        ) from None
    except ValueError as error:
        raise DataError(f"{path}: not TOML: {error}", "mend that line") from None
    zoo = _Reader(path).zoo(document)
    if not zoo.rows:
        raise DataError(
            f"{path}: no model is on any target",
            "`[[target]]` with name and target, and `[[model]]` with name and file",
        )
    return zoo


def _trouble(file: tuple[Path, Digest | None]) -> str:
    path, wanted = file
    try:
        found = Digest.of_file(path)
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror}"
    if wanted is not None and found != wanted:
        return f"{path}: has changed: sha256 {found.short}, and the zoo's file says {wanted.short}"
    return ""


@dataclass(frozen=True, slots=True)
class _Table:
    """A model or target of the file, with what is wrong with it."""

    name: str
    values: Mapping[str, Any]
    words: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    fault: str = ""


@dataclass(slots=True)
class _Reader:
    """Reads one file; faults of its own tables are collected on the way."""

    path: Path
    faults: list[str] = field(default_factory=list)

    def zoo(self, document: Mapping[str, Any]) -> Zoo:
        unknown = [key for key in document if key not in _TOP]
        self.faults += [f"{self.path}: {_unknown(key, _TOP)}" for key in unknown]
        name = document.get("name", self.path.stem)
        if not isinstance(name, str) or not name.strip():
            self.faults.append(f"{self.path}: name = {_shown(name)}: not a text")
            name = self.path.stem
        night = self._numbers(document, "night", _NIGHT)
        percents = self._numbers(document, "gate", _GATE)
        gates = Gates(**{key: percent / 100 for key, percent in percents.items()})
        search = SearchBudget(**self._numbers(document, "search", _SEARCH))
        targets = self._tables(document, "target", _OWN_TARGET, TARGET_OPTIONS)
        models = self._tables(document, "model", _OWN_MODEL, MODEL_OPTIONS)
        usual = ZooRow(row=Row("", ""), search=search, gates=gates)
        rows = [row for model in models for row in self._rows(model, targets, usual)]
        return Zoo(
            name=name,
            night=NightBudget(**night),
            rows=tuple(rows),
            faults=tuple(self.faults),
        )

    def _numbers(
        self, document: Mapping[str, Any], table: str, known: Mapping[str, tuple[float, float]]
    ) -> dict[str, Any]:
        """The keys of a table of numbers that are right; the others are faults of the file."""
        values = document.get(table, {})
        if not isinstance(values, dict):
            self.faults.append(f"{self.path}: {table}: not a table: `[{table}]` begins one")
            return {}
        right = {}
        for key, value in values.items():
            try:
                right[key.replace("-", "_")] = _number(key, value, known)
            except FaultError as fault:
                self.faults.append(f"{self.path}: [{table}] {fault}; as if it were not there")
        return right

    def _tables(
        self,
        document: Mapping[str, Any],
        kind: str,
        own: Sequence[str],
        options: Mapping[str, Any],
    ) -> list[_Table]:
        """Every `[[target]]` or `[[model]]`, with its options as words of `tilefarm tune`."""
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self.faults.append(f"{self.path}: {kind}: not a list: `[[{kind}]]` begins each")
            return []
        found: list[_Table] = []
        for number, values in enumerate(tables, 1):
            name = values.get("name")
            if not isinstance(name, str) or not name.strip():
                self.faults.append(f"{self.path}: [[{kind}]] number {number} has no name")
            elif any(each.name == name for each in found):
                self.faults.append(f"{self.path}: two [[{kind}]] are named {_shown(name)}")
            else:
                found.append(self._table(kind, name, values, own, options))
        return found

    def _table(
        self,
        kind: str,
        name: str,
        values: Mapping[str, Any],
        own: Sequence[str],
        options: Mapping[str, Any],
    ) -> _Table:
        where = f"{self.path}: [[{kind}]] {_shown(name)}"
        words, settings = list[str](), list[tuple[str, str]]()
        for key, value in values.items():
            if key in own:
                continue
            try:
                if key not in options:
                    raise FaultError(_unknown(key, [*own, *options]))
                words += words_of(key, value, options[key], self.path.parent)
                settings.append((key, canonical_json(value)))
            except FaultError as fault:
                return _Table(name, values, fault=f"{where}: {fault}")
        return _Table(name, values, tuple(words), tuple(sorted(settings)))

    def _rows(self, model: _Table, targets: Sequence[_Table], usual: ZooRow) -> Iterator[ZooRow]:
        where = f"{self.path}: [[model]] {_shown(model.name)}"
        named = model.values.get("targets", [each.name for each in targets])
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            self.faults.append(f"{where}: targets = {_shown(named)}: not a list of names")
            return
        known = {target.name: target for target in targets}
        for name in dict.fromkeys(named):
            row = replace(usual, row=Row(model.name, name))
            if name not in known:
                listed = ", ".join(known) or "none"
                fault = f"{where}: no target is named {_shown(name)}; there is {listed}"
                yield replace(row, fault=fault)
                continue
            target = known[name]
            try:
                yield self._row(row, model, target)
            except FaultError as fault:
                yield replace(row, fault=f"{where}: {fault}")

    def _row(self, row: ZooRow, model: _Table, target: _Table) -> ZooRow:
        """Raises FaultError where a key of the model is wrong."""
        values = model.values
        file = values.get("file")
        if not isinstance(file, str) or not file:
            raise FaultError('no file: file = "net.onnx", or a name such as "zoo:resnet18"')
        known, words, files = dict(_digests(values)), [*model.words, *target.words], []
        is_name = file.partition(":")[0] in ("zoo", "op")
        if not is_name:
            path = self.path.parent / file
            files.append((path, known.pop("file", None)))
            file = str(path)
        for key in _FILES:
            if key in values:
                path = self.path.parent / _text(key, values[key])
                files.append((path, known.pop(key, None)))
                words += [f"--{key}", str(path)]
        if known:
            raise FaultError(f"sha256 of {', '.join(known)}: no such file is named here")
        score = _number("score", values["score"], {"score": _SCORE}) if "score" in values else None
        return replace(
            row,
            model=file,
            words=tuple(words),
            settings=model.settings,
            files=tuple(files),
            search=_model_search(values.get("search", {}), row.search),
            gates=replace(row.gates, least_score=score),
            fault=model.fault or target.fault,
        )


def _digests(values: Mapping[str, Any]) -> Iterator[tuple[str, Digest]]:
    """Those of `sha256`: a text is the model's, a table names files by their keys."""
    told = values.get("sha256", {})
    table = {"file": told} if isinstance(told, str) else told
    if not isinstance(table, dict):
        raise FaultError(f"sha256 = {_shown(told)}: not a text, or a table of them")
    for key, text in table.items():
        try:
            yield key, Digest(_text("sha256", text))
        except ValueError:
            raise FaultError(f"sha256 = {_shown(text)}: not 64 hexadecimal digits") from None


def _model_search(values: object, usual: SearchBudget) -> SearchBudget:
    if not isinstance(values, dict):
        raise FaultError(f"search = {_shown(values)}: not a table: {{trials = 64}}")
    numbers = {key.replace("-", "_"): _number(key, v, _SEARCH) for key, v in values.items()}
    return replace(usual, **numbers)


def _number(key: str, value: object, known: Mapping[str, tuple[float, float]]) -> Any:
    if key not in known:
        raise FaultError(_unknown(key, list(known)))
    least, most = known[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(str(value)) if is_number else math.nan
    if not least <= number <= most:
        raise FaultError(f"{key} = {_shown(value)}: not a number from {least:g} to {most:g}")
    if key in _WHOLE and not isinstance(value, int):
        raise FaultError(f"{key} = {_shown(value)}: not a whole number")
    return value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise FaultError(f"{key} = {_shown(value)}: not a text")
    return value


def _unknown(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    meant = f"; {near[0]}?" if near else f"; there are {', '.join(known)}"
    return f"{printable(key)}: no such key{meant if near or len(known) < 12 else ''}"


def _shown(value: object) -> str:
    return printable(repr(value), 80)
