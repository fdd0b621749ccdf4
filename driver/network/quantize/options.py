"""How a network becomes integers, as the user asks for it: no data, no arrays here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from tilefarm.errors import SettingsError

from driver.network.quantize.methods import (
    DEFAULT_METHOD,
    MIN_MAX,
    CalibrationMethod,
    calibration_method,
)

Activations: TypeAlias = Literal["symmetric", "mixed", "asymmetric"]
Requantize: TypeAlias = Literal["shift", "mul"]

DATA_NEEDED: Final = "--equalize, --share-shifts and --correct-bias need"
"""What `Quantization.needs_data` means; what they need follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """What the user decides; the fields are the options of `driver.commands.options.quantizing`.

    Attributes:
        calibration: how ranges follow from data; see `calibration_method`. None: as usual, or as
            suits the network better, see `quantize.option_search`.
        activations: whether zero is the middle of every int8 tensor, or what layers make may lie
            around its own middle, everywhere or (`mixed`) where nothing is copied for it; see
            `quantize.zero_points`.
        equalize: whether channels are brought to like ranges first; see `quantize.equalize`;
            None: where it helps.
        share_shifts: whether the channels of a block share a shift: always, never, or (None) where
            no result shows it, see `quantize.refining`; then also where accuracy has much
            room. It needs data.
        correct_bias: whether biases make up for the mean of what quantization adds to the sums;
            None: where there are data. See `quantize.refining`.
        fit_weights: whether weights are rounded to fit one another, see `quantize.rounding`;
            without data to fit what may be assumed.
        requantize: whether sums become int8 by a shift alone, or by a multiplication and a shift;
            see `quantize.power_of_two_requantization` and `quantize.fixed_point_requantization`.
        keep_float: names of layers that stay in float on the processor, or patterns of names.
        wide: names of layers whose weights have 16 bits, or patterns of names; see
            `quantize.wide_weights`. None: where many answers would change otherwise,
            or see `quantize.own_integers`.
        wide_activations: names of layers whose results have 16 bits, or patterns of names; see
            `quantize.wide_activations`. None: as for `wide`.
        floats: whether nothing becomes integers, see `quantize.float_network`.

    Raises:
        SettingsError: an option is impossible.
    """

    calibration: str | None = None
    activations: Activations = "mixed"
    equalize: bool | None = None
    share_shifts: bool | None = None
    correct_bias: bool | None = None
    fit_weights: bool = True
    requantize: Requantize = "shift"
    keep_float: tuple[str, ...] = ()
    wide: tuple[str, ...] | None = None
    wide_activations: tuple[str, ...] | None = None
    floats: bool = False

    def __post_init__(self) -> None:
        _ = self.method
        for option, value, known in (
            ("activations", self.activations, get_args(Activations)),
            ("requantize", self.requantize, get_args(Requantize)),
        ):
            if value not in known:
                raise SettingsError(
                    f"--{option} {value}: no such scheme", f"one of {', '.join(known)}"
                )
        if self.floats and replace(self, floats=False) != Quantization():
            raise SettingsError(
                "--float quantizes nothing, and other options say how to", "leave those out"
            )

    @property
    def method(self) -> CalibrationMethod:
        """What decides the ranges."""
        return MIN_MAX if self.calibration is None else calibration_method(self.calibration)

    @property
    def is_open(self) -> bool:
        """Whether anything is left to be decided by what suits the network."""
        decided = (self.calibration, self.equalize, self.share_shifts)
        return None in (*decided, self.wide, self.wide_activations)

    @property
    def needs_data(self) -> bool:
        """Whether data are used even where a model gives every range."""
        return self != self.without_data()

    def without_data(self) -> Quantization:
        """The same but for what needs data."""
        return replace(
            self,
            equalize=self.equalize and None,
            share_shifts=self.share_shifts and None,
            correct_bias=self.correct_bias and None,
        )

    def of_floats(self) -> Quantization:
        """The same but for what only integers depend on."""
        return replace(
            self,
            share_shifts=None,
            correct_bias=None,
            fit_weights=True,
            requantize="shift",
            wide=None,
        )

    def with_float(self, names: Sequence[str]) -> Quantization:
        """The same with more layers in float, which then have nothing of 16 bits."""
        return replace(
            self,
            keep_float=(*self.keep_float, *names),
            wide=_without(self.wide, names),
            wide_activations=_without(self.wide_activations, names),
        )

    def __str__(self) -> str:
        if self.floats:
            return "float32, nothing is quantized"
        words = [self.calibration or DEFAULT_METHOD]
        words += [self.activations] if self.activations != AS_USUAL.activations else []
        words += ["equalized"] if self.equalize else []
        words += ["shifts shared"] if self.share_shifts else []
        words += ["shifts of their own"] if self.share_shifts is False else []
        words += ["biases as they are"] if self.correct_bias is False else []
        words += [] if self.fit_weights else ["weights rounded to the nearest"]
        words += ["multiplied"] if self.requantize == "mul" else []
        words += [f"{', '.join(self.keep_float)} in float"] if self.keep_float else []
        words += [f"{', '.join(self.wide)} with weights of 16 bits"] if self.wide else []
        wide = ", ".join(self.wide_activations or ())
        words += [f"{wide} with results of 16 bits"] if wide else []
        return ", ".join(words)


def _without(names: tuple[str, ...] | None, others: Sequence[str]) -> tuple[str, ...] | None:
    return None if names is None else tuple(name for name in names if name not in others)


AS_USUAL: Final = Quantization()
"""What holds where nothing is said."""
