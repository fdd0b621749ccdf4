"""What one run is asked to do: one frozen record, defaults below options, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.address import is_loopback
from tilefarm.errors import SettingsError
from tilefarm.watch.operations import UNWATCHED, Operations

from driver.farm.settings import FarmSettings
from driver.network import AS_USUAL, DATA_NEEDED, AnswerKind, Promise, Quantization, check_kind
from driver.settings import at_least, wait_from
from tuner import PROPOSERS

if TYPE_CHECKING:
    from driver.network import Extents

DEFAULT_TRIALS: Final = 240
DEFAULT_LEAST_GAIN: Final = 0.5
"""Percent; of a search whose user does not say how many trials."""
DEFAULT_PROPOSER: Final = "guided"
_WHOLE_PERCENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSettings:
    """One `tilefarm tune`.

    Attributes:
        model: the ONNX file.
        calibrate: npz of inputs whose ranges decide the quantization; None for a quantized model
            that gives them all itself.
        extents: of inputs and dimensions that the model leaves open.
        quantization: how the network becomes integers.
        evaluate: npz of inputs, and labels if it has them, for the final check; None: the
            calibration data, or seeded random inputs where there are none.
        max_loss: points of accuracy that the integers may lose; None: the default is only judged.
        judge: what the network answers, a word of `ANSWER_KINDS`; None: as shapes say.
        out: the output folder.
        trials: measured candidates over all workloads; earlier sessions' count. Each workload gets
            one at least.
        device_seconds: of its runs on devices, likewise.
        proposer: a name in `tuner.PROPOSERS`.
        seed: of everything that is random.
        search_seed: of the search alone; None: `seed`.
        search_seconds: after which a search ends with what it has found by then; None: never.
        lookahead: candidates that are out at most, proposed and not ended; None: as the folder was
            searched before, or the tuner's usual number.
        least_gain: percent of the network's time; a search ends when all that is left saves less.
        records: schedules of other runs: each workload begins with its best, and what this run
            measures is added. None: runs know nothing of one another.
        schedules: a file of `driver.tune.chosen_schedules`: the program is built from these,
            whatever spaces say of their points; with `trials` a search goes on from them.
            None: all is searched.
        compare: the library whose times stand beside the program's; processors only.
        plugins: Python files of the user's, which this process has loaded.
        operations: how the run's processes are watched.
    """

    model: Path
    out: Path
    calibrate: Path | None = None
    extents: Extents = field(default_factory=dict)
    quantization: Quantization = AS_USUAL
    evaluate: Path | None = None
    judge: AnswerKind | None = None
    max_loss: float | None = None
    trials: int = DEFAULT_TRIALS
    device_seconds: float | None = None
    proposer: str = DEFAULT_PROPOSER
    seed: int = 0
    search_seed: int | None = None
    search_seconds: float | None = None
    lookahead: int | None = None
    least_gain: float = 0.0
    records: Path | None = None
    schedules: Path | None = None
    compare: str | None = None
    plugins: tuple[Path, ...] = ()
    farm: FarmSettings = field(default_factory=FarmSettings)
    operations: Operations = UNWATCHED

    def __post_init__(self) -> None:
        at_least("--trials", self.trials, 0)
        at_least("--seed", self.seed, 0)
        if self.search_seed is not None:
            at_least("--search-seed", self.search_seed, 0)
        if self.search_seconds is not None:
            wait_from("--search-seconds", self.search_seconds, 0.1)
        if self.device_seconds is not None:
            wait_from("--device-seconds", self.device_seconds, 0.001)
        if self.judge is not None:
            check_kind(self.judge)
        if self.lookahead is not None:
            at_least("--lookahead", self.lookahead, 1)
        at_least("--least-gain", self.least_gain, 0)
        if self.least_gain >= _WHOLE_PERCENT:
            raise SettingsError(
                f"--least-gain {self.least_gain:g}: nothing can gain so many percent",
                f"--least-gain {DEFAULT_LEAST_GAIN:g}",
            )
        _ = self.promise
        metrics = self.operations.metrics
        if metrics is not None and not is_loopback(metrics):
            raise SettingsError(
                f"--metrics {metrics}: a run's numbers are read on its own machine",
                "127.0.0.1:9464, and a Prometheus or its agent there",
            )
        if self.calibrate is None and self.quantization.needs_data:
            raise SettingsError(
                f"{DATA_NEEDED} --calibrate DATA.npz", "give data, or leave them out"
            )
        if self.proposer not in PROPOSERS:
            raise SettingsError(
                f"unknown proposer {self.proposer!r}", f"one of {', '.join(PROPOSERS)}"
            )

    @property
    def promise(self) -> Promise:
        """What the integers may lose."""
        return Promise() if self.max_loss is None else Promise(points=self.max_loss, is_said=True)
