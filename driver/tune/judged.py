"""The step that judges the promise: before the search, on samples that did not calibrate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import SettingsError
from tilefarm.plural import form, plural
from tilefarm.target import Target

from driver.network import (
    CHANCE_WORDS,
    CYCLES_ARE,
    SHARED_SHIFTS,
    Arrays,
    Blamed,
    Fitted,
    Judgement,
    Network,
    PlanCost,
    Promise,
    QuantGraph,
    Remedy,
    RemedyPlan,
    TensorNoise,
    blamed,
    chance_accuracy,
    estimated_cycles,
    expected_loss,
    float_form,
    has_own_arithmetic,
    is_chance,
    judge_of,
    judgement,
    noise_sources,
    partition_network,
    plans_for,
    points_text,
    quantize_for,
    readers_of_wide_results,
    remedies_for,
    run_float,
    run_integer,
    wide_weights_possible,
    with_measured_cycles,
    with_remedies,
)
from driver.report.noise_chart import NoiseRow
from driver.tune.answers import Answers, Hear
from driver.tune.files import Files
from driver.tune.plan_kernels import simulated
from driver.tune.run_context import RunContext

_MACS: Final = 10_000_000_000
"""Multiply-accumulates of the samples that are judged before the search where nobody asked for a
promise: some seconds of numpy. All samples are judged at the end."""
_LEAST_SAMPLES: Final = 4
_NOISE_SAMPLES: Final = 16
_LEAST_DECIDING: Final = 2
"""Samples that a promise may lose, so that not a single one decides about it."""
_NAMED: Final = 3
"""Layers that a warning names."""
_LEAST_SHARE: Final = 0.05
"""Of the noise, from which on a layer is worth naming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedNetwork:
    """What came of the promise.

    Attributes:
        quantized, network: with the remedies that keep it.
        judgement: None where there are no samples that say anything.
        blamed: the layers that add noise, the worst first; empty where the promise is kept.
        noise: of every layer, for its picture; empty where the promise is kept.
        plans: that were tried, if the user asked for a promise; best: the one that was taken.
    """

    quantized: QuantGraph
    network: Network
    floats: Answers
    integers: Answers
    judgement: Judgement | None
    blamed: tuple[Blamed, ...] = ()
    noise: tuple[NoiseRow, ...] = ()
    plans: tuple[RemedyPlan, ...] = ()
    best: RemedyPlan | None = None


class _Form(NamedTuple):
    """The network with some remedies."""

    quantized: QuantGraph
    network: Network
    integers: Answers


def require_samples(promise: Promise, files: Files) -> None:
    """Nothing if a promise that the user asked for can be judged.

    Raises:
        SettingsError: there are no samples for it.
    """
    fresh = 0 if files.is_seeded else int(files.held_out.sum())
    if promise.is_said and fresh < 2:
        raise SettingsError(
            f"--max-loss {promise.points:g}: it is judged on samples that did not calibrate the"
            f" network, and there {form(fresh, 'is', 'are')} {fresh or 'none'}",
            "--evaluate DATA.npz with other samples, better hundreds of them",
        )


def judge_promise(
    context: RunContext, files: Files, target: Target, fitted: Fitted, network: Network
) -> JudgedNetwork:
    """Judge it, and keep it by wide weights and layers in float where that is needed and wanted.

    Raises:
        SettingsError: the user asked for a promise that cannot be kept.
    """
    with context.step("judge") as say:
        judging = _Judging(context, files, target, fitted, network, say)
        with context.watch.waiting(judging.doing):
            return judging.run()


class _Judging:
    def __init__(
        self,
        context: RunContext,
        files: Files,
        target: Target,
        fitted: Fitted,
        network: Network,
        say: Callable[[str], None],
    ) -> None:
        self._context, self._files, self._target = context, files, target
        self._quantized, self._how = fitted.quantized, fitted.how
        self._network, self._say = network, say
        self._promise = context.settings.promise
        self._floats = Answers(
            lambda part, heard: run_float(files.graph, part, heard=heard), files.evaluation.inputs
        )
        self._integers = _integers(fitted.quantized, files)
        self._fresh = files.held_out
        self._doing = "all layers in integers"

    def run(self) -> JudgedNetwork:
        judged = JudgedNetwork(
            quantized=self._quantized,
            network=self._network,
            floats=self._floats,
            integers=self._integers,
            judgement=None,
        )
        if self._files.is_seeded:
            self._say("not judged: the samples are random")
            return judged
        if self._files.evaluation.samples < 2:
            self._context.say(
                "1 sample to evaluate says next to nothing about accuracy\n"
                "  try: --evaluate DATA.npz with more, better hundreds of them"
            )
        self._say_few()
        self._say_chance()
        found = self._judgement(self._integers)
        if found is None:
            self._say("not judged: the samples say nothing about the answers")
            return judged
        self._say(found.words())
        is_said, judged = self._promise.is_said, replace(judged, judgement=found)
        is_kept = found.is_kept
        if is_said:
            is_kept = self._points(self._integers) <= self._promise.limit
        if not self._target.has_accelerator:
            return self._on_processor(judged, is_kept=is_kept)
        if not is_kept:
            noise, layers = self._blame()
            judged = replace(judged, blamed=tuple(layers), noise=_rows(noise, judged))
        if is_said:
            return self._repaired(judged, is_kept=is_kept)
        return judged if is_kept else self._warned(judged)

    def _on_processor(self, judged: JudgedNetwork, *, is_kept: bool) -> JudgedNetwork:
        """As it is: remedies are about the arithmetic of accelerators.

        Raises:
            SettingsError: the user asked for a promise that is not kept.
        """
        if is_kept:
            return judged
        remedy = "--keep-float NAME,... keeps layers in float32, --calibration METHOD other ranges"
        if has_own_arithmetic(self._files.graph):
            remedy = "quantize the model otherwise: a processor computes what its file says"
        if self._promise.is_said:
            points = points_text(max(self._points(self._integers), 0))
            raise SettingsError(
                f"--max-loss {self._promise.points:g} is not kept: a loss of {points} is expected,"
                " and remedies are searched for accelerators alone",
                remedy,
            )
        verdict = judged.judgement.verdict() if judged.judgement else ""
        self._context.say(f"accuracy: {verdict}\n  try: {remedy}")
        return judged

    def doing(self) -> str:
        """What takes so long, in words."""
        return f"judge: {self._doing}"

    def _judgement(self, integers: Answers) -> Judgement | None:
        """On the samples that are looked at before the search."""
        samples = self._samples
        floats, found = self._floats.first(samples), integers.first(samples)
        return judge_samples(self._context, self._files, floats, found, self._fresh)

    @property
    def _samples(self) -> int:
        """All where the user asked for a promise, otherwise as many as take seconds."""
        samples = self._files.evaluation.samples
        if self._promise.is_said:
            return samples
        most = _MACS // max(1, self._network.macs // self._network.batch)
        return min(samples, max(_LEAST_SAMPLES, most))

    def _say_few(self) -> None:
        """A line where a sample or two decide about the promise that the user asked for."""
        points, samples = self._promise.points, int(self._fresh.sum())
        needed = math.ceil(100 * _LEAST_DECIDING / points) if points else 0
        if self._promise.is_said and self._files.kind == "classes" and samples < needed:
            self._context.say(
                f"each of {plural(samples, 'sample')} is {points_text(100 / samples)}: a promise"
                f" of {points_text(points)} hangs on single ones\n"
                f"  try: --evaluate DATA.npz with {needed} or more"
            )

    def _say_chance(self) -> None:
        """A line where labels and network do not go together."""
        kind, labels = self._files.kind, self._files.evaluation.labels
        samples = self._samples
        likely = None if labels is None else chance_accuracy(labels[:samples], kind)
        if labels is None or likely is None:
            return
        floats = self._floats.first(samples)
        judge = judge_of(kind, self._files.graph, floats, labels[:samples])
        first = judge.compared(floats)[0]
        if first.floats is not None and is_chance(first.floats, likely, samples):
            guess, remedy = CHANCE_WORDS[kind]
            self._context.say(
                f"the float network has {first.floats:.1f} % {first.title}, {guess}"
                f" ({likely:.1f} %): labels are left aside\n"
                f"  try: {remedy}"
            )

    def _blame(self) -> tuple[dict[str, TensorNoise], list[Blamed]]:
        """The noise of every tensor, and the layers that add it, the worst first."""
        calibration = self._files.calibration
        given = None if calibration is None else calibration.inputs
        graph = float_form(self._files.graph, given, self._how)
        per_sample = max(1, self._network.macs // self._network.batch)
        most = min(_NOISE_SAMPLES, max(1, _MACS // per_sample))
        seen = self._files.evaluation.first(most)
        noise = noise_sources(graph, self._quantized, seen.inputs)
        return noise, blamed(noise, self._quantized, self._network.macs_by_layer())

    def _warned(self, judged: JudgedNetwork) -> JudgedNetwork:
        """The promise is the default: nobody asked for less speed."""
        worst = [each for each in judged.blamed if each.share >= _LEAST_SHARE][:_NAMED]
        lines = [f"accuracy: {judged.judgement.verdict() if judged.judgement else ''}"]
        if worst:
            lines.append(f"  to blame: {', '.join(each.words() for each in worst)}")
            names = ",".join(each.name for each in worst)
            macs = sum(each.macs for each in worst)
            price = f"{_millions(macs)} of {_millions(self._network.macs)} million MACs"
            lines.append(
                f"  try: {self._wider(worst)}"
                f"--max-loss {self._promise.points:g} finds the cheapest that is enough;"
                f" --keep-float {names} runs {price} on the processor"
            )
        self._context.say("\n".join(lines))
        return judged

    def _wider(self, layers: Sequence[Blamed]) -> str:
        """What helps those of the layers whose weights, or rounding, add most of their noise."""
        networks = self._files.graph, self._quantized
        words = ""
        for option, source, what, names in (
            ("--wide-weights", "weights", "weights", wide_weights_possible(*networks)),
            ("--wide-activations", "rounding", "results", readers_of_wide_results(*networks, {})),
        ):
            bad = [each.name for each in layers if each.source == source and each.name in names]
            if bad:
                words += f"{option} {','.join(bad)} has {what} of 16 bits, on the accelerator; "
        return words

    def _repaired(self, judged: JudgedNetwork, *, is_kept: bool) -> JudgedNetwork:
        """The user asked for the promise: as cheaply as it can be kept.

        Raises:
            SettingsError: it cannot.
        """
        made: dict[tuple[Remedy, ...], _Form] = {}
        if not is_kept:
            points = points_text(max(self._points(self._integers), 0))
            self._context.say(
                f"accuracy: {judged.judgement.verdict() if judged.judgement else ''}; a loss of"
                f" {points} is expected: layers are tried with 16 bits and in float,"
                " each plan one more network"
            )
        plans = self._tried(judged.blamed, made)
        with simulated(self._target) as measure:
            priced = with_measured_cycles(
                plans,
                [made[plan.remedies].network for plan in plans],
                self._promise.limit,
                measure,
                self._context.clock,
                heard=self._measured,
            )
        if (best := priced.best) is None:
            raise self._unkept(judged, plans)
        chosen = made[best.remedies]
        found = self._judgement(chosen.integers)
        if best.remedies:
            told, plain = best, priced.plans[0]
            if plain.basis != told.basis:  # there was no time to measure both
                told, plain = next(p for p in plans if p.remedies == best.remedies), plans[0]
            dearer = told.cycles / max(1, plain.cycles)
            in_float = f"{_millions(best.macs)} million MACs in float, " if best.floats else ""
            self._say(
                f"kept with {_listed(best)} ({in_float}{dearer:.3g} times the cycles,"
                f" {CYCLES_ARE[told.basis]}):"
                f" {points_text(max(found.points, 0) if found else 0)} lost"
            )
        return replace(
            judged,
            quantized=chosen.quantized,
            network=chosen.network,
            integers=chosen.integers,
            judgement=found,
            plans=priced.plans,
            best=best,
        )

    def _tried(
        self, layers: Sequence[Blamed], made: dict[tuple[Remedy, ...], _Form]
    ) -> Sequence[RemedyPlan]:
        """Plans that were tried, the first without any remedy; puts what each makes into `made`."""

        def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
            self._doing = f"plan {len(made) + 1}: {plural(len(chosen), 'remedy', 'remedies')}"
            made[chosen] = made_so = self._with(chosen)
            return PlanCost(
                points=self._points(made_so.integers), cycles=estimated_cycles(made_so.network)
            )

        may_share = self._files.calibration is not None and self._how.share_shifts is None
        savings = (SHARED_SHIFTS,) if may_share else ()
        found = remedies_for(self._files.graph, self._quantized, self._network, self._how, layers)
        return plans_for(found, judge, self._promise.limit, savings=savings)

    def _unkept(self, judged: JudgedNetwork, plans: Sequence[RemedyPlan]) -> SettingsError:
        nearest = min(plans, key=lambda plan: (plan.points, plan.cycles))
        return SettingsError(
            f"--max-loss {self._promise.points:g} cannot be kept: {_short(judged.judgement)};"
            f" nearest comes {points_text(max(nearest.points, 0))} with {_listed(nearest)}",
            f"--max-loss {_above(nearest.points):g}, or other options of quantization:"
            " `tilefarm tune --help`",
        )

    def _measured(self, done: int, kernels: int) -> None:
        self._doing = f"kernel {done + 1} of {kernels} of the plans that keep the promise"

    def _points(self, integers: Answers) -> float:
        """What is lost: counted, or expected of other samples like these, if that is more."""
        found = self._judgement(integers)
        if found is None:
            return math.inf
        if self._files.kind != "classes":
            return found.points
        floats, answers = self._floats.first(self._samples), integers.first(self._samples)
        labels = self._files.evaluation.labels if found.is_of_labels else None
        which = _judged_samples(self._fresh, self._samples)
        name = next(iter(floats))
        known = None if labels is None else labels[: self._samples][which]
        expected = expected_loss(floats[name][which], answers[name][which], known)
        return max(found.points, 100 * expected)

    def _with(self, chosen: tuple[Remedy, ...]) -> _Form:
        """The network with these remedies."""
        if not chosen:
            return _Form(self._quantized, self._network, self._integers)
        calibration = self._files.calibration
        quantized = quantize_for(
            self._target,
            self._files.graph,
            None if calibration is None else calibration.inputs,
            with_remedies(self._how, chosen),
        )
        integers = _integers(quantized, self._files)
        return _Form(quantized, partition_network(quantized, self._target), integers)


def _judged_samples(fresh: NDArray[np.bool_], samples: int) -> NDArray[np.bool_]:
    """Those of the first samples that did not calibrate, or all where every one did."""
    return fresh[:samples] if fresh[:samples].any() else np.ones(samples, bool)


def judge_samples(
    context: RunContext, files: Files, floats: Arrays, integers: Arrays, fresh: NDArray[np.bool_]
) -> Judgement | None:
    """What the integers lose on those samples that are fresh, or on all where none is.

    Args:
        floats, integers: the answers to the first samples of the evaluation.
        fresh: for every sample of the evaluation whether it did not calibrate.
    """
    samples = len(next(iter(floats.values())))
    which = _judged_samples(fresh, samples)
    labels = files.evaluation.labels
    known = None if labels is None else labels[:samples][which]
    judge = judge_of(files.kind, files.graph, _part(floats, which), known)
    return judgement(
        context.settings.promise,
        judge.compared(_part(integers, which)),
        samples=int(which.sum()),
        is_held_out=bool(fresh[:samples].any()),
        chance=chance_accuracy(known, files.kind),
    )


def _part(arrays: Arrays, which: NDArray[np.bool_]) -> Arrays:
    return {name: values[which] for name, values in arrays.items()}


def _integers(quantized: QuantGraph, files: Files) -> Answers:
    def compute(part: Arrays, heard: Hear | None) -> Arrays:
        return run_integer(quantized, part, heard=heard)

    return Answers(compute, files.evaluation.inputs)


def _rows(noise: dict[str, TensorNoise], judged: JudgedNetwork) -> tuple[NoiseRow, ...]:
    names = {node.output: node.name for node in judged.quantized.nodes}
    return tuple(
        NoiseRow(
            name=names[output],
            ratio_db=each.noise.ratio_db,
            shares=tuple(each.sources.shares().items()) if each.sources else (),
        )
        for output, each in noise.items()
    )


def _short(found: Judgement | None) -> str:
    return found.words() if found else "nothing is known"


def _listed(plan: RemedyPlan) -> str:
    """The remedies in few words."""
    parts = ["asymmetric activations"] if plan.is_asymmetric else []
    parts += [f"weights of 16 bits in {_few(plan.wide)}"] if plan.wide else []
    parts += [f"results of 16 bits of {_few(plan.wide_results)}"] if plan.wide_results else []
    parts += [f"{_few(plan.floats)} in float on the processor"] if plan.floats else []
    parts += ["shared shifts"] if plan.shares_shifts else []
    return " and ".join(parts) or "nothing"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    first = ", ".join(names[:_NAMED])
    return f"{first} and {plural(more, 'other layer')}" if more > 0 else first


def _above(points: float) -> float:
    """A round number of points that is enough."""
    return float(np.ceil(points * 10 + 1e-6) / 10)


def _millions(macs: int) -> str:
    return f"{macs / 1e6:.2f}"
