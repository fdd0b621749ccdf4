"""The difference of two measurements of a row, in lines that a person reads from the top."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilefarm.measurement import DeviceClock
from tilefarm.plural import plural

from driver.jobs.nightly.records import ChosenSchedule, LayerSample, Sample
from driver.jobs.nightly.why.evidence import Evidence
from driver.jobs.nightly.words import cost_text

_LAYERS: Final = 5
_CAUSES: Final = 3
_LEAST: Final = 0.001
"""What a layer has more or less than before, as a share of the network, to be named; by a clock it
must be more than the layer's share of the network's spread, too."""
_DIFF_LINES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A sample with what was kept of its kernels.

    Attributes:
        schedules: of each workload by name.
        evidence: of each workload by name, as far as there is any.
    """

    sample: Sample
    schedules: Mapping[str, ChosenSchedule] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why two measurements differ.

    Attributes:
        lines: the most important first.
        details: (title, text) of what takes more than a line: differences of schedules and code.
    """

    lines: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _LayerChange:
    """A layer before and now; None where the network had none of that name."""

    before: LayerSample | None
    now: LayerSample | None

    @property
    def more(self) -> float:
        """Cycles or seconds that it takes more; negative: less."""
        return _cost(self.now) - _cost(self.before)

    @property
    def layer(self) -> LayerSample:
        found = self.now or self.before
        assert found is not None
        return found


def explained(before: Measured, now: Measured, commits: Sequence[str] = ()) -> Explanation:
    """What is different between two measurements of a row.

    Args:
        commits: between the two, a line each.
    """
    changes = _layer_changes(before.sample, now.sample)
    workloads = list(dict.fromkeys(change.layer.workload for change in changes))
    moved = [name for name in workloads if name in now.schedules or name in before.schedules]
    lines = [
        *_layer_lines(changes, now.sample),
        *_code_lines(before, now),
        *(line for name in moved for line in _cause_lines(name, before, now)),
        *_commit_lines(commits),
    ]
    details = [detail for name in moved for detail in _details(name, before, now)]
    if commits:
        details.append(("commits", "\n".join(commits)))
    return Explanation(lines=tuple(lines), details=tuple(details))


def _cost(layer: LayerSample | None) -> float:
    return layer.cost or 0.0 if layer else 0.0


def _layer_changes(before: Sample, now: Sample) -> list[_LayerChange]:
    """The layers that moved, those that moved most first."""
    earlier = {layer.layer: layer for layer in before.time.layers}
    later = {layer.layer: layer for layer in now.time.layers}
    changes = [
        _LayerChange(earlier.get(name), later.get(name)) for name in dict.fromkeys(later | earlier)
    ]
    noise = (now.time.high - now.time.low) / now.time.cost
    moved = [
        change
        for change in changes
        if abs(change.more) > max(_LEAST * before.time.cost, noise * _cost(change.before))
    ]
    return sorted(moved, key=lambda change: -abs(change.more))


def _layer_lines(changes: Sequence[_LayerChange], now: Sample) -> Iterator[str]:
    clock = now.machine.clock
    unit = " cycles" if clock is DeviceClock.CYCLES else ""
    for change in changes[:_LAYERS]:
        more = cost_text(abs(change.more), clock) + unit
        direction = "more" if change.more > 0 else "less"
        if change.before is None:
            yield f"{change.layer.layer} is new: {more}"
        elif change.now is None:
            yield f"{change.layer.layer} is gone: {more} less"
        else:
            share = change.more / _cost(change.before) if _cost(change.before) else 0.0
            yield f"{change.layer.layer} takes {more} {direction} ({100 * share:+.1f} %)"
    if len(changes) > _LAYERS:
        rest = sum(change.more for change in changes[_LAYERS:])
        sign = "+" if rest > 0 else "-"
        others = plural(len(changes) - _LAYERS, "other layer")
        yield f"{others}: {sign}{cost_text(abs(rest), clock)}{unit}"


def _code_lines(before: Measured, now: Measured) -> Iterator[str]:
    """What of the kernels is another than it was."""
    common = [name for name in now.schedules if name in before.schedules]
    traces = [n for n in common if now.schedules[n].trace != before.schedules[n].trace]
    code = [
        name
        for name, made in now.evidence.items()
        if name in before.evidence
        and made.lowered != before.evidence[name].lowered
        and made.lowered
        and before.evidence[name].lowered
    ]
    same = [name for name in code if name not in traces]
    if traces:
        yield f"{plural(len(traces), 'workload')} with another schedule"
    if same:
        yield f"{plural(len(same), 'workload')} of the same schedule with other code"
    if new := [name for name in now.schedules if name not in before.schedules]:
        yield f"{plural(len(new), 'workload')} that was not there: {', '.join(new[:_LAYERS])}"
    missing = [name for name, made in now.evidence.items() if not made.lowered]
    for name in missing[:_LAYERS]:
        why = now.evidence[name].why
        yield f"no code of {name} is kept" + (f": {why}" if why else "")
    if before.evidence and now.evidence and not (traces or same or new or missing):
        yield "the code of every kernel is what it was"


def _cause_lines(name: str, before: Measured, now: Measured) -> Iterator[str]:
    """Which cycles of a kernel are more or less than they were."""
    if name not in before.evidence or name not in now.evidence:
        return
    earlier, later = dict(before.evidence[name].causes), dict(now.evidence[name].causes)
    changes = {cause: later.get(cause, 0) - earlier.get(cause, 0) for cause in later | earlier}
    told = sorted((cause for cause, n in changes.items() if n), key=lambda c: -abs(changes[c]))
    if told and earlier and later:
        words = ", ".join(
            f"{cause} {changes[cause]:+,}".replace(",", " ") for cause in told[:_CAUSES]
        )
        yield f"{name}, cycles by cause: {words}"


def _commit_lines(commits: Sequence[str]) -> Iterator[str]:
    if len(commits) == 1:
        yield f"commit {commits[0]}"
    elif commits:
        yield f"{plural(len(commits), 'commit')} since, the last: {commits[0]}"


def _details(name: str, before: Measured, now: Measured) -> Iterator[tuple[str, str]]:
    """What takes more than a line."""
    if name in before.schedules and name in now.schedules:
        difference = before.schedules[name].trace.diff(now.schedules[name].trace)
        if difference:
            yield f"{name}: schedule", difference
    if name in before.evidence and name in now.evidence:
        texts = before.evidence[name].lowered, now.evidence[name].lowered
        difference = _difference(*texts) if all(texts) else ""
        if difference:
            yield f"{name}: lowered code", difference


def _difference(before: str, now: str) -> str:
    lines = list(
        difflib.unified_diff(before.splitlines(), now.splitlines(), "before", "now", "", "", 2, "")
    )
    if len(lines) > _DIFF_LINES:
        lines[_DIFF_LINES:] = [f"… and {plural(len(lines) - _DIFF_LINES, 'line')} more"]
    return "\n".join(lines)
