"""The options that say how a network becomes integers."""

from __future__ import annotations

import argparse

import pytest
from tilefarm.errors import SettingsError

from driver.commands.options.quantizing import add_quantization_options, quantization
from driver.network.quantize.options import AS_USUAL, Quantization


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_quantization_options(made)
    return made


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ((), AS_USUAL),
        (("--calibration", "entropy"), Quantization(calibration="entropy")),
        (("--activations", "asymmetric"), Quantization(activations="asymmetric")),
        (("--equalize",), Quantization(equalize=True)),
        (("--correct-bias",), Quantization(correct_bias=True)),
        (("--no-correct-bias",), Quantization(correct_bias=False)),
        (("--no-fit-weights",), Quantization(fit_weights=False)),
        (("--requantize", "mul"), Quantization(requantize="mul")),
        (("--keep-float", "conv1, head.*,"), Quantization(keep_float=("conv1", "head.*"))),
        (("--wide-weights", "*, fc"), Quantization(wide=("*", "fc"))),
        (("--wide-activations", "*, fc"), Quantization(wide_activations=("*", "fc"))),
    ],
)
def test_options_become_the_record(words: tuple[str, ...], meant: Quantization) -> None:
    assert quantization(parser().parse_args(words)) == meant


def test_the_record_in_words() -> None:
    assert str(Quantization(keep_float=("conv1", "head.*"))) == "minmax, conv1, head.* in float"
    assert str(Quantization(wide=("a", "b*"))) == "minmax, a, b* with weights of 16 bits"
    how = Quantization(wide=("a",), wide_activations=("b", "c*"))
    assert str(how) == "minmax, a with weights of 16 bits, b, c* with results of 16 bits"


def test_a_layer_that_goes_to_float_has_no_wide_weights() -> None:
    how = Quantization(keep_float=("first",), wide=("a", "b*", "c"))
    assert how.with_float(["c", "b1"]) == Quantization(
        keep_float=("first", "c", "b1"), wide=("a", "b*")
    )


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(SettingsError, match="--activations uneven: no such scheme") as refused:
        quantization(parser().parse_args(["--activations", "uneven"]))
    assert refused.value.hint == "one of symmetric, mixed, asymmetric"
    with pytest.raises(SettingsError, match="--requantize div: no such scheme") as refused:
        quantization(parser().parse_args(["--requantize", "div"]))
    assert refused.value.hint == "one of shift, mul"


@pytest.mark.parametrize(
    "how",
    [
        Quantization(equalize=True),
        Quantization(correct_bias=True, calibration="entropy"),
    ],
)
def test_what_needs_data_can_be_left_out(how: Quantization) -> None:
    assert how.needs_data
    assert not how.without_data().needs_data
    assert how.without_data() == Quantization(calibration=how.calibration)


def test_defaults_use_data_where_there_are_any() -> None:
    assert not AS_USUAL.needs_data
    assert not Quantization(correct_bias=False).needs_data
    assert Quantization(correct_bias=False).without_data().correct_bias is False


def test_what_was_chosen_in_words() -> None:
    everything = Quantization(activations="asymmetric", equalize=True, correct_bias=True)
    nothing = Quantization(activations="symmetric", correct_bias=False, fit_weights=False)
    assert str(AS_USUAL) == "minmax"
    assert str(everything) == "minmax, asymmetric, equalized"
    assert str(nothing) == ("minmax, symmetric, biases as they are, weights rounded to the nearest")
    assert str(Quantization(requantize="mul")) == "minmax, multiplied"


def test_the_help_names_every_method() -> None:
    shown = " ".join(parser().format_help().split())
    for words in ("minmax", "percentile 99.99 %", "percentile:P", "entropy", "default: minmax"):
        assert words in shown
