"""What is tried of a network of the zoo, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilefarm.plural import plural

from driver.benchmarks.zoo.recipes import LEAST_SHARE, ZooRecipe
from driver.benchmarks.zoo.scores import score_text
from driver.network import AnswerKind, Compared, Quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What to try.

    Attributes:
        name: of the row; model: its file, or a network that comes with tilefarm.
        data: the folder with the zoo's data.
        samples: labels to score at most; None: all.
        how: how it becomes integers.
        with_peer: run ONNX Runtime as well.
        says: whether to say on stderr how far it is.
    """

    name: str
    model: str
    recipe: ZooRecipe
    data: Path
    how: Quantization
    target: str
    samples: int | None = None
    with_peer: bool = False
    says: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetUse:
    """What a network needed of the target.

    Attributes:
        share: of the multiply-accumulates that are on the accelerator; None: there is none.
        crossings: tensors that go from there to the processor, or back.
        macs: multiply-accumulates of one run.
        plain_cycles, predicted_cycles, program_seconds, ready_seconds: see `OnDevice`.
    """

    share: float | None
    crossings: int
    macs: int
    plain_cycles: int | None
    predicted_cycles: int | None
    program_seconds: float | None
    ready_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What came of it.

    Attributes:
        samples: that were scored; labels: how many they have.
        is_seeded: they are random.
        floats, integers, device: scores by the recipe's metric; None where there are no labels.
        peer: ONNX Runtime's score on these samples, if it ran here.
        peer_db: signal to difference between ONNX Runtime's worst output and the integers', dB.
        peer_int8, peer_int8_db: score of ONNX Runtime's own int8 of a float network, calibrated by
            the same data, and signal to noise of its worst output.
        was_quantized: whether the model gives every range.
        gate: the least score of the device; None where there is none, or too few samples to judge.
        kind: what the network answers, see `driver.network.accuracy.kinds`.
        compared: all measures of that kind, against labels and against the float network.
        differing: samples whose outputs on the device are not the integer reference's.
        sqnr_db: signal to quantization noise of the worst output; None where nothing differs.
    """

    name: str
    recipe: ZooRecipe
    samples: int
    kind: AnswerKind
    compared: tuple[Compared, ...]
    differing: int
    use: TargetUse
    seconds: float
    labels: int = 0
    is_seeded: bool = False
    floats: float | None = None
    integers: float | None = None
    device: float | None = None
    peer: float | None = None
    peer_db: float | None = None
    peer_int8: float | None = None
    peer_int8_db: float | None = None
    was_quantized: bool = False
    gate: float | None = None
    sqnr_db: float | None = None

    @property
    def against_float(self) -> Compared:
        """The measure that says most about how like the float network's answers are."""
        return next(each for each in self.compared if each.against == "float")

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, in words; nothing where it passes."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[str]:
        if self.differing:
            samples = plural(self.samples, "sample")
            yield f"{self.differing} of {samples} differ from the integer reference"
        if self.gate is not None and self.device is not None and not self.device >= self.gate:
            device, gate = (
                score_text(self.recipe.metric, each) for each in (self.device, self.gate)
            )
            yield f"{device} on the device is below the gate of {gate}"
        if self.use.share is not None and self.use.share < LEAST_SHARE:
            share = f"{100 * self.use.share:.1f} %"
            yield f"only {share} of the multiply-accumulates are on the accelerator"


@dataclass(frozen=True, slots=True)
class RefusedNetwork:
    """A network that could not be tried, and why."""

    name: str
    why: str
