"""A profile as text and JSON: the device's own units, and no number that was not told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kit.reports.profiles import counted_profile, timed_profile
from tilefarm.measurement import CallTime

from driver.report.profile_chart import profile_section
from driver.report.profile_rows import profile_document
from driver.report.terminal.profile_text import profile_lines

COUNTED = """\
layer     kernel  cycles   share  predicted  ratio
x.int8  quantize       -       -          -      -
conv1   conv2d_a   1 000  25.0 %      1 000  1.00x
dense    dense_b   3 000  75.0 %      1 500  2.00x

layers one by one 4 000 cycles, 1.25x the whole network's 3 200 cycles
-: on the processor, whose time the accelerator does not count"""

TIMED = """\
layer     kernel   median  spread   share  predicted  ratio
x.int8  quantize   1.0 us   3.0 %   2.4 %          -      -
conv1   conv2d_a  10.0 us   3.0 %  24.4 %      1 000  1.00x
dense    dense_b  30.0 us   3.0 %  73.2 %      1 500  2.00x

layers one by one 41.0 us, 1.24x the whole network's 33.0 us
ratio: to the predicted cycles at 100 MHz"""


SPEEDS = """\
layer     kernel   median  spread   share  GMAC/s  of peak
x.int8  quantize   1.0 us   3.0 %   2.4 %       -        -
conv1   conv2d_a  10.0 us   3.0 %  24.4 %    50.0   50.0 %
dense    dense_b  30.0 us   3.0 %  73.2 %    20.0   20.0 %

layers one by one 41.0 us, 1.24x the whole network's 33.0 us
peak: 100.0 GMAC/s, measured beside the layers"""

PLAIN = timed_profile()


def test_cycles_of_a_device_that_counts_them() -> None:
    assert "\n".join(profile_lines(counted_profile())) == COUNTED


def test_microseconds_and_spread_of_one_that_does_not() -> None:
    assert "\n".join(profile_lines(timed_profile(clock_mhz=100))) == TIMED


def test_layers_of_a_processor_stand_beside_its_peak() -> None:
    layers = [
        replace(layer, macs=macs)
        for layer, macs in zip(PLAIN.layers, (0, 500_000, 600_000), strict=True)
    ]
    profile = replace(PLAIN, layers=tuple(layers), peak=100e9)
    assert "\n".join(profile_lines(profile)) == SPEEDS
    row = profile_document(profile)["layers"][1]
    assert row["macs_per_second"] == pytest.approx(50e9)
    assert row["of_peak"] == pytest.approx(0.5)
    assert profile.speed(layers[0]) is None


def test_without_a_measured_peak_there_is_no_share_of_it() -> None:
    layers = tuple(replace(layer, macs=500_000) for layer in PLAIN.layers)
    text = "\n".join(profile_lines(replace(PLAIN, layers=layers)))
    assert "GMAC/s" in text
    assert "peak" not in text


def test_where_nothing_is_predicted_there_is_no_column_of_it() -> None:
    layers = tuple(replace(layer, predicted_cycles=None, ratio=None) for layer in PLAIN.layers)
    profile = replace(PLAIN, layers=layers, mhz=None)
    for text in ("\n".join(profile_lines(profile)), profile_section(profile)):
        assert "dense" in text
        assert "predicted" not in text
        assert "ratio" not in text


def test_a_document_has_the_same_for_machines() -> None:
    document = json.loads(json.dumps(profile_document(counted_profile())))
    assert (document["clock"], document["mhz"], document["layers_cost"]) == ("cycles", None, 4000)
    assert document["network"] == {"cycles": 3200}
    assert document["layers"][2] == {
        "layer": "dense",
        "kernel": "dense_b",
        "entry": "network_call2",
        "cycles": 3000,
        "share": 0.75,
        "predicted_cycles": 1500,
        "ratio": 2.0,
        "macs": 0,
        "macs_per_second": None,
        "of_peak": None,
    }
    timed = profile_document(timed_profile(clock_mhz=100))
    assert (timed["clock"], timed["mhz"]) == ("seconds", 100)
    row = timed["layers"][0]
    assert "cycles" not in row
    assert (row["median_seconds"], row["regions"], row["rejected"]) == (1e-6, 900, 7)


def test_a_program_that_takes_many_times_its_layers_is_told() -> None:
    odd = replace(counted_profile(), network=CallTime(cycles=160_000))
    said = "the whole program takes 40.0 times what its parts take one by one"
    assert any(line.startswith(said) for line in profile_lines(odd))
    assert profile_document(odd)["remark"].startswith(said)
    assert profile_document(counted_profile())["remark"] == ""
