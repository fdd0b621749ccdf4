"""`tilefarm bench seed`: the same search many times, under load and with kills: one result."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command
from tilefarm.plural import plural

from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.farm.scratch import scratch_folder
from driver.processes import kill_descendants
from tuner.trial_store import TrialStore

_RUNS: Final = 30
_TRIALS: Final = 120
_LOAD: Final = 4
_MOST_KILLS: Final = 3
_KILLS: Final = 50
_LONGEST_PIECE: Final = 6.0
"""Seconds until a kill at a random moment, at most: a start takes two or three of them."""
_BUSY: Final = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
"""Computes for as long as whoever has started it lives."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench seed --gate
  tilefarm bench seed --runs 4 --trials 60 --load 0 --kills 10

Whole searches of the demo, each a process with a folder of its own. The first is left alone. All
others run beside --load processes that do nothing but compute; every second one of them is killed
(as `kill -9` does, with all that is below it) between one and {_MOST_KILLS} times after a random
trial, and started again with the same command. In the end all folders must name the same best
schedule for every workload, and hold the same trials: as many, in the same order of asking, with
the same ends and cycles.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    for name, default, least, what in (
        ("runs", _RUNS, 2, "searches"),
        ("trials", _TRIALS, 2, "of each search"),
        ("load", _LOAD, 0, "processes that compute beside"),
        ("kills", _KILLS, 0, "of one more search, at random moments"),
        ("seed", 0, 0, "of all searches, and of the moments of the kills"),
    ):
        add_number(parser, name, what, default=default, least=least)
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    chance = random.Random(args.seed)
    searches: list[SeededSearch] = []
    with scratch_folder() as scratch, ExitStack() as beside:
        for number in range(args.runs):
            if number == 1:
                beside.enter_context(_load(args.load))
            kills = chance.randrange(1, _MOST_KILLS + 1) if number and number % 2 == 0 else 0
            after = sorted(chance.randrange(1, args.trials) for _ in range(kills))
            searches.append(searched(scratch / f"{number}", args.trials, args.seed, after))
            if not args.json:
                print(f"search {number + 1}: {searches[-1]}", flush=True)
        moments = [chance.uniform(0, _LONGEST_PIECE) for _ in range(args.kills)]
        pieces, again = searched_in_pieces(scratch / "pieces", args.trials, args.seed, moments)
        searches.append(pieces)
        if not args.json:
            print(f"in pieces: {pieces}", flush=True)
    figures = list(seed_figures(searches))
    figures.append(Figure(name="trials measured again", value=again, unit="", goal=0))
    document = {
        "machine": machine(),
        "load": args.load,
        "figures": [f.row() for f in figures],
        "searches": list(map(asdict, searches)),
    }
    tell(args, figure_table(figures), lambda: document)
    return gated(args, figures)


@dataclass(frozen=True, slots=True)
class SeededSearch:
    """What a search found.

    Attributes:
        best: the trace of the best schedule of each workload.
        trials: of each, as asked for: workload, trace, how it ended and its cycles.
        kills: how often it was killed.
        seconds: from its first start to its end.
    """

    best: tuple[tuple[str, str], ...]
    trials: tuple[tuple[Any, ...], ...]
    kills: int
    seconds: float

    def __str__(self) -> str:
        return f"{plural(len(self.trials), 'trial')} in {self.seconds:.0f} s, killed {self.kills}x"


def seed_figures(searches: Sequence[SeededSearch]) -> Iterator[Figure]:
    """How many different results there are; the rates are of those that were not killed."""
    alone, *others = searches
    yield Figure(name="searches", value=len(searches), unit="")
    yield Figure(name="  kills", value=sum(each.kills for each in searches), unit="")
    bests, ends = ({each.best for each in searches}, {each.trials for each in searches})
    yield Figure(name="distinct best schedules", value=len(bests), unit="", goal=1)
    yield Figure(name="distinct trials", value=len(ends), unit="", goal=1)
    yield Figure(name="left alone", value=len(alone.trials) / alone.seconds, unit="trials/s")
    loaded = [len(each.trials) / each.seconds for each in others if not each.kills]
    if loaded:
        yield Figure(name="under load", value=sum(loaded) / len(loaded), unit="trials/s")


@contextmanager
def _load(count: int) -> Iterator[None]:
    """So many processes that keep processors busy, within the block."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen(python_command("-c", _BUSY)))
            stack.callback(process.kill)
        yield


def searched(out: Path, trials: int, seed: int, kills: Sequence[int]) -> SeededSearch:
    """One search, killed after these trials.

    Raises:
        InfraError: it failed.
    """
    began = time.monotonic()
    killed = sum(_session(out, trials, seed, after) for after in (*kills, None))
    return _found(out, killed, time.monotonic() - began)


def searched_in_pieces(
    out: Path, trials: int, seed: int, moments: Sequence[float]
) -> tuple[SeededSearch, int]:
    """One search, killed so many seconds after each start; and how many trials came again.

    A kill that finds the search at its end counts as none.

    Raises:
        InfraError: it failed.
    """
    began, told, killed = time.monotonic(), list[int](), 0
    for moment in (*moments, None):
        with tempfile.TemporaryFile("w+") as said, _started(out, trials, seed, said) as process:
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                killed += 1
                kill_descendants(process.pid)
                process.kill()
            else:
                _check(process, _words(out, trials, seed))
            said.seek(0)
            told += trials_told(said)
    again = len(told) - len(set(told))
    return _found(out, killed, time.monotonic() - began), again


def trials_told(lines: Iterable[str]) -> Iterator[int]:
    """Numbers of trials that a process has told; its last line may be half of one."""
    for line in lines:
        with suppress(json.JSONDecodeError):
            told = json.loads(line)
            if told["event"] == "trial":
                yield told["number"]


def _found(out: Path, kills: int, seconds: float) -> SeededSearch:
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        ended = store.trials()
        workloads = dict.fromkeys(trial.workload for trial in ended)
        best = [(w.hex, trial.trace.hex) for w in workloads if (trial := store.best(w))]
    return SeededSearch(
        best=tuple(best),
        trials=tuple((t.workload.hex, t.trace.hex, t.status.value, t.cycles) for t in ended),
        kills=kills,
        seconds=seconds,
    )


def _session(out: Path, trials: int, seed: int, kill_after: int | None) -> bool:
    """Let a process search, and kill it after a trial; whether it was killed."""
    with _started(out, trials, seed, subprocess.PIPE) as process:
        assert process.stdout is not None
        for number in trials_told(process.stdout):
            if kill_after and number >= kill_after:
                kill_descendants(process.pid)
                process.kill()
                return True
    _check(process, _words(out, trials, seed))
    return False


def _started(out: Path, trials: int, seed: int, said: int | IO[str]) -> subprocess.Popen[str]:
    command = python_command("-m", "driver.cli", *_words(out, trials, seed))
    return subprocess.Popen(command, stdout=said, text=True)


def _words(out: Path, trials: int, seed: int) -> list[str]:
    words = ["demo", "--json", "--no-ray", "--workers", "2", "--devices", "2", "--out", str(out)]
    return [*words, "--trials", str(trials), "--seed", str(seed)]


def _check(process: subprocess.Popen[str], words: Sequence[str]) -> None:
    """Refuse an end that is a failure.

    Raises:
        InfraError: it is one.
    """
    if process.returncode:
        alone = f"`tilefarm {' '.join(words)}` does the same alone"
        raise InfraError(f"the search ended with exit code {process.returncode}", alone)
