"""How a network becomes integers, as the user asks for it: no data, no arrays here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from tilefarm.errors import SettingsError

from driver.quantize.methods import DEFAULT_METHOD, CalibrationMethod, calibration_method

Activations: TypeAlias = Literal["symmetric", "mixed", "asymmetric"]
Requantize: TypeAlias = Literal["shift", "mul"]

DATA_NEEDED: Final = "--equalize and --correct-bias need"
"""What `Quantization.needs_data` means; what they need follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """What the user decides; the fields are the options of `driver.options.quantizing`.

    Attributes:
        calibration: how ranges follow from data; see `calibration_method`.
        activations: whether zero is the middle of every int8 tensor, or what layers make may lie
            around its own middle, everywhere or (`mixed`) where that costs nothing; see
            `driver.quantize.centering`.
        equalize: whether channels are brought to like ranges first; see `driver.quantize.equalize`.
        correct_bias: whether biases make up for the mean of what quantization adds to the sums;
            None: where there are data. See `driver.quantize.refining`.
        fit_weights: whether weights are rounded to fit one another, see `driver.quantize.rounding`;
            without data to fit what may be assumed.
        requantize: whether sums become int8 by a shift alone, or by a multiplication and a shift;
            see `driver.quantize.shift_exact` and `driver.quantize.multiplied`.
        keep_float: names of layers that stay in float on the processor, or patterns of names.

    Raises:
        SettingsError: an option is impossible.
    """

    calibration: str = DEFAULT_METHOD
    activations: Activations = "mixed"
    equalize: bool = False
    correct_bias: bool | None = None
    fit_weights: bool = True
    requantize: Requantize = "shift"
    keep_float: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        calibration_method(self.calibration)
        for option, value, known in (
            ("activations", self.activations, get_args(Activations)),
            ("requantize", self.requantize, get_args(Requantize)),
        ):
            if value not in known:
                raise SettingsError(
                    f"--{option} {value}: no such scheme", f"one of {', '.join(known)}"
                )

    @property
    def method(self) -> CalibrationMethod:
        """What decides the ranges."""
        return calibration_method(self.calibration)

    @property
    def needs_data(self) -> bool:
        """Whether data are used even where a model gives every range."""
        return self != self.without_data()

    def without_data(self) -> Quantization:
        """The same but for what needs data."""
        return replace(self, equalize=False, correct_bias=self.correct_bias and None)

    def __str__(self) -> str:
        words = [self.calibration]
        words += [self.activations] if self.activations != AS_USUAL.activations else []
        words += ["equalized"] if self.equalize else []
        words += ["biases as they are"] if self.correct_bias is False else []
        words += [] if self.fit_weights else ["weights rounded to the nearest"]
        words += ["multiplied"] if self.requantize == "mul" else []
        words += [f"{', '.join(self.keep_float)} in float"] if self.keep_float else []
        return ", ".join(words)


AS_USUAL: Final = Quantization()
"""What holds where nothing is said."""
