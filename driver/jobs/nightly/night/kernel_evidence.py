"""What tonight's code has made of each kernel, for nights to come that ask why they differ."""

from __future__ import annotations

from collections.abc import Sequence

from tilefarm.target import Target

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import keep_kernels, kept_kernels
from driver.jobs.nightly.records import Sample


def keep_evidence(history: History, samples: Sequence[Sample], target: Target) -> None:
    """Keeps it of all schedules of these samples; nothing is compiled where all of it is known.

    Raises:
        OutputError: the history cannot be written.
    """
    for sample in samples:
        if not _is_known(history, sample):
            _keep(history, sample, target)


def _is_known(history: History, sample: Sample) -> bool:
    """Whether a night before has kept what this very code makes of these schedules."""
    return any(
        each.order.code == sample.order.code and each.schedules == sample.schedules
        for each in history.samples(row=sample.row)
        if each.night != sample.night
    )


def _keep(history: History, sample: Sample, target: Target) -> None:
    # The compiler is loaded for this alone; most nights need none.
    from driver.jobs.nightly.why import Evidence, evidence_of

    schedules = history.schedules(sample.schedules)
    before = kept_kernels(history, sample.night, sample.machine.target, schedules)
    made = {
        chosen: evidence_of(
            chosen, target, Evidence.read(before[chosen]) if chosen in before else None
        ).content
        for chosen in schedules
    }
    keep_kernels(history, sample.night, sample.machine.target, made)
