"""The page of a compile stays one that a browser shows, however long the run is."""

from __future__ import annotations

from kit.kernels.nests import dense

from driver.commands.compile_steps.page import page_of
from driver.commands.compile_steps.steps import STREAM, CompileSteps, Shown
from driver.program.vta.cycle_breakdown import CycleBreakdown
from driver.program.vta.stream import Stream
from driver.report.tables import count


def page(instructions: int) -> str:
    lines = tuple(f"instruction {number}" for number in range(instructions))
    made = CompileSteps([Shown(STREAM, "instructions", "\n".join(lines), "stream")])
    stream = Stream(lines=lines, spent=CycleBreakdown(), timeline=())
    return page_of(made, dense(4, 2), "default", stream)


def test_a_short_stream_is_on_the_page_whole() -> None:
    text = page(800)
    assert text.count("instruction ") == 800
    assert "left out" not in text


def test_of_a_long_stream_the_page_has_both_ends() -> None:
    text = page(100_000)
    assert len(text) < 100_000
    assert text.count("instruction ") == 800
    for number in (0, 399, 99_600, 99_999):
        assert f"instruction {number}<" in text
    assert "instruction 400<" not in text
    assert f"{count(99_200)} instructions are left out here: --after stream prints" in text
