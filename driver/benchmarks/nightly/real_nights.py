"""Real nights: what they take, first, second, with another compiler; and killed again and again."""

from __future__ import annotations

import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command

from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly.other_compiler import other_compiler
from driver.commands.nightly import EXIT_FAILS
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.night.night import HISTORY
from driver.jobs.nightly.night.row_folder import NIGHTS
from driver.jobs.nightly.records import Verdict
from driver.tune.chosen_schedules import GIVEN
from tuner.trial_store import TrialStore

_TARGETS: Final = ("sim", "sim-pynq-z1")
NETWORKS: Final = (
    "zoo:digits",
    "op:gemm m=64 n=64 k=64",
    "op:gemm m=16 n=256 k=256",
    "zoo:squeezenet",
    "zoo:mobilenet_v1",
    "zoo:mobilenet_v2",
    "zoo:inception_v1",
    "zoo:resnet18",
)
_SMALL: Final = NETWORKS[:2]
_FIRST_SECONDS: Final = 900.0
_AGAIN_SECONDS: Final = 180.0
_SOONEST, _LATEST = 0.3, 20.0
"""Seconds after which a night is killed: anywhere from its first to its last step."""


def night_figures(folder: Path, networks: Sequence[str]) -> Iterator[Figure]:
    """Nights of a zoo on two simulators, two rows at a time: first, again, changed."""
    zoo, rows = _zoo(folder, networks), len(networks) * len(_TARGETS)
    for name, goal in (
        ("first night", _FIRST_SECONDS),
        ("second night, nothing changed", _AGAIN_SECONDS),
    ):
        seconds = _whole(zoo, folder)
        yield Figure(name=f"{name}, {rows} rows", value=seconds, unit="s", goal=goal)
    moved = _moved(folder)
    yield Figure(name="rows that seem to have changed in it", value=moved, unit="", goal=0)
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as sources:
        seconds = _whole(zoo, folder, other_compiler(Path(sources)))
    name = f"a night with one pass left out, {rows} rows"
    yield Figure(name=name, value=seconds, unit="s", goal=_FIRST_SECONDS)
    moved = _moved(folder)
    yield Figure(name="rows that it says have changed", value=moved, unit="")


def _moved(folder: Path) -> int:
    """The rows of the last night that are not as they were."""
    with History(folder / HISTORY, read_only=True) as history:
        last = history.verdicts(night=history.nights()[-1].name)
    return sum(each.verdict is not Verdict.UNCHANGED for each in last)


def killed_figures(folder: Path, kills: int, seed: int) -> Iterator[Figure]:
    """Nights that are killed so often, beside as many undisturbed ones."""
    rng = random.Random(seed)
    disturbed, undisturbed = folder / "killed", folder / "undisturbed"
    for each in (disturbed, undisturbed):
        each.mkdir(parents=True)
    zoo = _zoo(folder, _SMALL)
    killed = 0
    while killed < kills:
        killed += _killed(zoo, disturbed, rng.uniform(_SOONEST, _LATEST))
    _whole(zoo, disturbed)
    theirs = _told(disturbed)
    for _ in range(len({night for night, *_ in theirs})):
        _whole(zoo, undisturbed)
    ours = _told(undisturbed)
    same = [row[1:] for row in theirs] == [row[1:] for row in ours]
    yield Figure(name="kills", value=killed, unit="", goal=kills, more_is_better=True)
    nights = len({night for night, *_ in ours})
    yield Figure(name="nights that they fell into", value=nights, unit="")
    yield Figure(
        name="the same history as undisturbed", value=same, unit="", goal=1, more_is_better=True
    )
    yield Figure(name="trials measured twice", value=_repeated(disturbed), unit="", goal=0)


def _zoo(folder: Path, networks: Sequence[str]) -> Path:
    """The file of a zoo with these on both targets, two rows at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [f'[[target]]\nname = "{each}"\ntarget = "{each}"' for each in _TARGETS]
    tables += [f'[[model]]\nname = "{each}"\nfile = "{each}"' for each in networks]
    path = folder / "zoo.toml"
    head = 'name = "bench"\n[night]\nrows = 2\nkeep = 1000\n'
    path.write_text(head + "\n".join(tables) + "\n")
    return path


def _command(zoo: Path, folder: Path) -> list[str]:
    return python_command("-m", "driver.cli", "nightly", str(zoo), "--history", str(folder))


def _whole(zoo: Path, folder: Path, before: Sequence[str] = ()) -> float:
    """A night to its end; its seconds.

    Raises:
        InfraError: it did not come to its end.
    """
    began = time.monotonic()
    command = [*before, *_command(zoo, folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, EXIT_FAILS):
        raise InfraError(f"a night ended with {done.returncode}: {done.stdout}{done.stderr}")
    return time.monotonic() - began


def _killed(zoo: Path, folder: Path, seconds: float) -> bool:
    """Whether a night was killed after so long; otherwise it had ended before."""
    process = subprocess.Popen(
        _command(zoo, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def _told(folder: Path) -> list[tuple[Any, ...]]:
    """What a history says, but for when."""
    with History(folder / HISTORY, read_only=True) as history:
        places = {night.name: at for at, night in enumerate(history.nights())}
        samples = [
            (
                *(places[s.night], "sample", str(s.row), s.part.value, s.time.cost),
                *(s.schedules.hex, s.answers.digest.hex, s.order.digest.hex, s.machine.digest.hex),
            )
            for s in history.samples()
        ]
        verdicts = [
            (places[v.night], "verdict", str(v.row), v.verdict.value, v.change or 0.0)
            for v in history.verdicts()
        ]
        adopted = [
            (places[a.night], "adopted", str(a.row), a.schedules.hex) for a in history.adoptions()
        ]
    return sorted([*samples, *verdicts, *adopted], key=str)


def _repeated(folder: Path) -> int:
    """Trials that runs' logs tell of beyond those that their records have."""
    found = 0
    for records in sorted((folder / NIGHTS).rglob("records.sqlite")):
        with TrialStore(records, read_only=True) as store:
            own = sum(run.trials for run in store.runs() if not run.run.endswith(GIVEN))
        log = records.parent / "log" / "search.log"
        told = log.read_text().count(" event=trial ") if log.exists() else 0
        found += max(0, told - own)
    return found
