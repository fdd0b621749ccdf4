"""Everything a report shows of one finished run, in records that need nothing else to be drawn.

Times are seconds since the run began. What kernels take is told in cycles where the device counts
them, else in seconds by the clock, and the other one is None everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tilefarm.measurement import TimelineEvent

from driver.network import AnswerKind, Compared, Judgement, RemedyPlan
from driver.report.comparison import Comparison
from driver.report.cost import NOT_KNOWN, Cost, gain, total
from driver.report.noise_chart import NoiseRow
from driver.report.profile import Profile, remark_on_whole
from driver.report.profile_rows import profile_document
from driver.report.rounds import RoundsTime
from driver.report.shown_plan import NetworkPlans
from driver.run_events import Span, TimeBreakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial of the search as the charts need it.

    Attributes:
        number: 1, 2, 3 … in the order in which they were asked for.
        workload: name of the workload.
        status: value of `tilefarm.measurement.Status`.
        cycles, kernel_seconds: None unless the status is "ok".
        ended_seconds: None when an earlier session measured it.
        point: (variable, value) of the tunables.
    """

    number: int
    workload: str
    status: str
    cycles: int | None
    ended_seconds: float | None
    device: str = ""
    proposer: str = ""
    why: str = ""
    is_default: bool = False
    point: tuple[tuple[str, int], ...] = ()
    kernel_seconds: float | None = None

    @property
    def cost(self) -> float | None:
        """What it took, by the run's clock."""
        return Cost(self.cycles, self.kernel_seconds).number


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One search on the run's folder: a killed or repeated command is a session each.

    Attributes:
        began: wall time in ISO 8601, UTC.
        seconds: of its search; None: it was killed, or goes on.
        trials: of it that are kept.
        outcome: why its search ended; empty where `seconds` is None.
    """

    began: str
    seconds: float | None
    trials: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRow:
    """What a search saw of one workload's space.

    Attributes:
        all_points: every combination of values, whatever the constraints say.
        valid_points: those that keep all constraints; an estimate unless `is_exact`.
        predictions: for each trial that ended well its number, the cycles that the space's own
            estimate said, and those that it took; empty where a space has no estimate.
        deciding: (variable, share) of the tunables: how much of the spread of what trials took
            goes with the variable's value, 0 to 1, the largest first.
    """

    workload: str
    all_points: float
    valid_points: float
    is_exact: bool
    measured: int
    failed: int
    predictions: tuple[tuple[int, float, float], ...] = ()
    deciding: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRow:
    """One distinct workload of the accelerator: what the terminal's table shows.

    Attributes:
        count: how often the network runs it.
        macs: useful multiply-accumulates of one run.
        ideal_cycles: MACs by the hardware's MACs per cycle.
        default: of the untuned schedule, if it has a good measurement.
        best: of the best trial, if one ended well.
        failures: (status, how many) of the trials that did not end well.
        best_point: tunables of the best trial.
    """

    name: str
    operator: str
    shape: str
    count: int
    macs: int
    ideal_cycles: int
    trials: int
    default: Cost = NOT_KNOWN
    best: Cost = NOT_KNOWN
    failures: tuple[tuple[str, int], ...] = ()
    best_point: tuple[tuple[str, int], ...] = ()

    @property
    def utilisation(self) -> float | None:
        """Ideal by best cycles, 0 to 1; None where no cycles are known."""
        return self.ideal_cycles / self.best.cycles if self.best.cycles else None

    @property
    def speed(self) -> float | None:
        """Multiply-accumulates a second of the best schedule; None where no seconds are told."""
        return self.macs / self.best.seconds if self.best.seconds else None

    @property
    def speedup(self) -> float | None:
        """Default by best."""
        return gain(self.default.number, self.best.number)

    def document(self) -> dict[str, Any]:
        """As JSON can say it."""
        document = asdict(self)
        del document["default"], document["best"]
        return document | _costs(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """One kernel call of the network, in the order of execution.

    Attributes:
        place: "accelerator" or "cpu"; `why` says why it is there.
        workload: what it runs there; None on the CPU.
    """

    name: str
    operator: str
    place: str
    why: str
    shape: str
    macs: int
    output_nbytes: int
    workload: WorkloadRow | None = None

    @property
    def best(self) -> Cost:
        """Of its best schedule; not known on the CPU."""
        return self.workload.best if self.workload else NOT_KNOWN

    @property
    def speedup(self) -> float | None:
        """Default by best."""
        return self.workload.speedup if self.workload else None

    def document(self) -> dict[str, Any]:
        """As JSON can say it."""
        row = self.workload
        costs = _costs(row)
        return asdict(self) | {
            "workload": row.name if row else "",
            "ideal_cycles": row.ideal_cycles if row else 0,
            "default_cycles": costs["default_cycles"],
            "cycles": costs["best_cycles"],
            "default_seconds": costs["default_seconds"],
            "kernel_seconds": costs["best_seconds"],
        }


def _costs(row: WorkloadRow | RunSummary | None) -> dict[str, Any]:
    """Default and best by four names, as documents have them."""
    default, best = (row.default, row.best) if row else (NOT_KNOWN, NOT_KNOWN)
    return {
        "default_cycles": default.cycles,
        "best_cycles": best.cycles,
        "default_seconds": default.seconds,
        "best_seconds": best.seconds,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaRect:
    """Where one tensor lies: [offset, offset + nbytes) from step `begin` up to, not with, `end`."""

    name: str
    begin_step: int
    end_step: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaPlan:
    """The plan of the memory that the network's intermediate tensors share.

    Attributes:
        nbytes: size of the arena.
        bound_nbytes: no plan in this order can be smaller.
        given_nbytes: what it would be with the steps in the order that the network came with.
        unshared_nbytes: what it would be if no two tensors shared memory.
        steps: names of the kernel calls along the time axis.
    """

    nbytes: int
    bound_nbytes: int
    given_nbytes: int
    unshared_nbytes: int
    steps: tuple[str, ...]
    rects: tuple[ArenaRect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimeline:
    """What load, compute and store did in one call of one kernel."""

    workload: str
    layer: str
    cycles: int
    events: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How good the answers of each execution of the network are.

    Attributes:
        images: samples that were run.
        labelled: how many of them have a label: all or none.
        kind: what the network answers, see `driver.network.accuracy.kinds`.
        compared: all measures; the first one says most.
        differing: samples whose device output is not bit for bit the integer reference's.
        answers: the digest of what the device answered.
        judgement: of the promise, on samples that did not calibrate; None where they say nothing.
    """

    images: int
    labelled: int
    kind: AnswerKind
    compared: tuple[Compared, ...]
    differing: int
    answers: str = ""
    judgement: Judgement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """What a run was made from, and when.

    Attributes:
        title: name of the model, as the user gave it (untrusted text).
        began: wall time in ISO 8601, UTC.
        has_accelerator: the target has one; else it is a processor alone.
    """

    title: str
    model_digest: str
    target: str
    target_digest: str
    began: str
    seed: int
    proposer: str
    has_accelerator: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFigures:
    """What this session took, and how fast it searched.

    Attributes:
        first_measured_seconds: from the start of the command to its first measured kernel.
        trials_per_second: of its search; None when it measured nothing.
        split: where the seconds of its trials went.
    """

    total_seconds: float
    search_seconds: float
    first_measured_seconds: float | None
    trials_per_second: float | None
    trials_this_session: int
    split: TimeBreakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run of `tilefarm tune`, complete.

    Attributes:
        trials: all trials known, earlier sessions' first.
        spans: of all sessions, in seconds since the first one began.
        sessions: all that there were, the first one first.
        network_cycles: accelerator cycles of one image through the assembled program.
        network_seconds: by the clock, where that tells what kernels take; all of the program's.
        network_rounds: the same in rounds with a control, twice, where schedules were given.
        device: that has timed the whole program: its name, its clock and what its times depend on.
        code: the digest of the code that compiled it.
        profile: what the layers of the assembled program take on a device, one by one.
        network_time: what they take at the clock of the target's board, in words.
        memory: when its steps run on which engine, and where tensors lie meanwhile.
        comparison: with another library on the same machine, if that was wanted.
        spaces: what the search saw of each workload's space.
        noise: of every layer, if the promise was broken at first.
        plans: what was tried to keep it, see `driver.network.accuracy.plans`.
        facts: (name, value) of anything else worth a line: versions, seed, host.
        interrupted: whether the search was stopped before its budget was spent.
    """

    run: RunOrigin
    session: SessionFigures
    workloads: tuple[WorkloadRow, ...]
    layers: tuple[LayerRow, ...]
    trials: tuple[TrialRow, ...]
    spans: tuple[Span, ...]
    arena: ArenaPlan | None = None
    timeline: KernelTimeline | None = None
    accuracy: Accuracy | None = None
    network_cycles: int | None = None
    network_seconds: float | None = None
    network_rounds: tuple[RoundsTime, ...] = ()
    device: Mapping[str, str] = field(default_factory=dict)
    network_time: str = ""
    memory: NetworkPlans | None = None
    profile: Profile | None = None
    comparison: Comparison | None = None
    spaces: tuple[SpaceRow, ...] = ()
    noise: tuple[NoiseRow, ...] = ()
    plans: tuple[RemedyPlan, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    code: str = ""
    interrupted: bool = False
    sessions: tuple[SessionRow, ...] = ()

    @property
    def network_by_kernels(self) -> float | None:
        """What the whole program takes, by what its parts take one by one; None if not known."""
        if self.network_cycles is not None:
            return gain(float(self.network_cycles), self.best.cycles)
        layers = self.profile.layers_cost if self.profile else None
        return gain(self.network_seconds, layers)

    @property
    def by_parts(self) -> tuple[float, float] | None:
        """Seconds of the searched kernels and of all other steps, as layers of the program.

        There caches hold what the layers before have left. None where no clock told them.
        """
        if self.profile is None or not self.profile.by_clock:
            return None
        searched = {row.name for row in self.workloads}
        costs = [(each.kernel in searched, each.cost or 0.0) for each in self.profile.layers]
        inside = math.fsum(cost for is_searched, cost in costs if is_searched)
        return inside, math.fsum(cost for _, cost in costs) - inside

    @property
    def peak(self) -> float | None:
        """Multiply-accumulates a second at most, measured in this run; processors only."""
        return self.profile.peak if self.profile else None

    @property
    def remark(self) -> str:
        """What is odd about the whole program's time, in words; empty if nothing is."""
        return remark_on_whole(self.network_by_kernels)

    @property
    def default(self) -> Cost:
        """Of all accelerator kernels with the untuned schedules, counts included."""
        return total((w.count, w.default) for w in self.workloads)

    @property
    def best(self) -> Cost:
        """Of all accelerator kernels with the best schedules, counts included."""
        return total((w.count, w.best) for w in self.workloads)

    @property
    def speedup(self) -> float | None:
        """Default by best, over the network."""
        return gain(self.default.number, self.best.number)


def brief(summary: RunSummary) -> Mapping[str, Any]:
    """The summary as a JSON document without what only pictures need (spans, trials, events)."""
    document = asdict(summary)
    for key in ("spans", "trials", "arena", "timeline", "noise", "profile", "memory"):
        del document[key]
    document |= document.pop("run") | document.pop("session")
    document["workloads"] = [row.document() for row in summary.workloads]
    for row in document["spaces"]:
        del row["predictions"]
    document["layers"] = [row.document() for row in summary.layers]
    if summary.accuracy:
        document["accuracy"]["compared"] = [row.document() for row in summary.accuracy.compared]
        found = summary.accuracy.judgement
        if found is not None:
            document["accuracy"]["judgement"] |= {"points": found.points, "is_kept": found.is_kept}
    document["plans"] = [
        {
            "wide": list(plan.wide),
            "wide_results": list(plan.wide_results),
            "floats": list(plan.floats),
            "asymmetric": plan.is_asymmetric,
            "shares_shifts": plan.shares_shifts,
            "macs": plan.macs,
            "cycles": plan.cycles,
            "basis": plan.basis,
            "points": plan.points if math.isfinite(plan.points) else None,
        }
        for plan in summary.plans
    ]
    return (
        document
        | _costs(summary)
        | {
            "speedup": summary.speedup,
            "network_by_kernels": summary.network_by_kernels,
            "remark": summary.remark,
            "profile": profile_document(summary.profile) if summary.profile else None,
            "arena_nbytes": summary.arena.nbytes if summary.arena else None,
        }
    )
