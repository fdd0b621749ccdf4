"""What tonight's code has made of each kernel, for nights to come that ask why they differ."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tilefarm.artifact import PluginText

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import keep_kernels, kept_kernels
from driver.jobs.nightly.night.row_command import target_of
from driver.jobs.nightly.records import ChosenSchedule, Sample


def keep_evidence(
    history: History, samples: Sequence[Sample], words: Sequence[str]
) -> tuple[str, ...]:
    """Keeps it of all schedules of these samples; nothing is compiled where all of it is known.

    Gives a line for each kernel that there is no code of, which says why.

    Args:
        words: the options of their row, which name the target and plugins.

    Raises:
        OutputError: the history cannot be written.
    """
    news = [sample for sample in samples if not _is_known(history, sample)]
    return tuple(line for sample in news for line in _keep(history, sample, words))


def _is_known(history: History, sample: Sample) -> bool:
    """Whether a night before has kept what this very code makes of these schedules."""
    return any(
        each.order.code == sample.order.code and each.schedules == sample.schedules
        for each in history.samples(row=sample.row)
        if each.night != sample.night
    )


def _keep(history: History, sample: Sample, words: Sequence[str]) -> list[str]:
    # The compiler is loaded for this alone; most nights need none.
    from driver.jobs.nightly.why import Evidence, evidence_of

    target = target_of(words)
    schedules = history.schedules(sample.schedules)
    plugins = _plugins(words, schedules)
    before = kept_kernels(history, sample.night, sample.machine.target, schedules)
    made = {
        chosen: evidence_of(
            chosen, target, Evidence.read(before[chosen]) if chosen in before else None, plugins
        )
        for chosen in schedules
    }
    contents = {chosen: each.content for chosen, each in made.items()}
    keep_kernels(history, sample.night, sample.machine.target, contents)
    return [f"no code of {each.workload} is kept: {each.why}" for each in made.values() if each.why]


def _plugins(words: Sequence[str], schedules: Sequence[ChosenSchedule]) -> tuple[PluginText, ...]:
    """The row's plugins that the schedules are lowered with; none that was edited meanwhile."""
    from compile_worker.plugins.passes import divided

    steps = [step for chosen in schedules for step in divided(chosen.trace)[1].steps]
    named = {digest for _, digest in (step.args for step in steps)}
    files = [Path(value) for option, value in pairwise(words) if option == "--plugin" and named]
    texts = []
    for file in files:
        with contextlib.suppress(OSError):
            texts.append(PluginText(str(file), file.read_bytes()))
    return tuple(each for each in texts if each.digest.hex in named)
