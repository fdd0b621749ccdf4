"""A program beside another library, in the terminal and on the page."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.reports.summaries import a_summary
from tilefarm.errors import SettingsError
from tilefarm.processors import PROCESSORS
from tilefarm.target import TARGETS

from driver.report.comparison import Comparison, LibraryLayer, LibraryTime
from driver.report.page import page
from driver.report.summary import brief
from driver.report.terminal.comparison_text import comparison_lines
from driver.tune.compared import check_comparable

COMPARISON = Comparison(
    library="ONNX Runtime 1",
    seconds=1e-4,
    times=(LibraryTime("int8", 2e-4), LibraryTime("float32", 3e-4)),
    layers=(LibraryLayer("a<b", "Conv", 1e-5), LibraryLayer("c", "QGemm", 5e-5)),
)

TEXT = """\
whole network, in turns     least  of ours
this program             100.0 us
ONNX Runtime 1, int8     200.0 us    2.00x
ONNX Runtime 1, float32  300.0 us    3.00x

its longest layers  operator    least
c                      QGemm  50.0 us
a<b                     Conv  10.0 us"""


def test_the_terminal_has_ours_first_and_the_longest_layers() -> None:
    lines = [line.rstrip() for line in comparison_lines(COMPARISON)]
    assert "\n".join(lines) == TEXT


def test_report_and_summary_have_it() -> None:
    summary = replace(a_summary(), comparison=COMPARISON)
    text = page(summary)
    assert "ONNX Runtime 1, float32" in text
    assert "a&lt;b" in text
    assert brief(summary)["comparison"]["times"][0] == {"kind": "int8", "seconds": 2e-4}
    assert "Beside another library" not in page(a_summary())


def test_only_a_processor_that_is_here_is_compared() -> None:
    check_comparable(PROCESSORS[0], None)
    with pytest.raises(SettingsError, match="sim is no processor"):
        check_comparable(TARGETS["sim"], None)
    with pytest.raises(SettingsError, match="devices of a farm elsewhere"):
        check_comparable(PROCESSORS[0], "farm:9190")
