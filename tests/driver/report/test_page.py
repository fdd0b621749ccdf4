"""The report shows what the summary says, needs nothing from elsewhere, and trusts no name."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from kit.reports.profiles import counted_profile, timed_profile
from kit.reports.summaries import a_summary, by_the_clock
from tilefarm.measurement import TimelineEvent

from driver.network.accuracy.plans import RemedyPlan
from driver.network.accuracy.promise import Promise
from driver.network.accuracy.remedies import Remedy
from driver.report.gantt_chart import busy_seconds
from driver.report.noise_chart import NoiseRow
from driver.report.page import page, write_report
from driver.report.profile import Profile
from driver.report.progress_chart import progress_chart
from driver.report.summary import brief
from driver.report.svg import AxisScale, short
from driver.report.timeline_chart import drawable, merged
from driver.report.trace import chrome_trace
from driver.run_events import Span


def test_the_page_needs_no_network_and_no_script() -> None:
    text = page(a_summary())
    assert not re.search(r"(src|href)=|@import|url\(|<script", text)
    assert "default-src 'none'" in text


def test_every_picture_is_well_formed() -> None:
    pictures = re.findall(r"<svg.*?</svg>", page(a_summary()), flags=re.DOTALL)
    assert len(pictures) == 4  # curves, Gantt, kernel, arena
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_the_names_of_many_curves_are_inside_their_picture() -> None:
    summary = a_summary()
    trained, trial = summary.workloads[0], next(t for t in summary.trials if t.cycles)
    many = range(30)
    chart = progress_chart(
        replace(
            summary,
            workloads=tuple(replace(trained, name=f"layer{i}") for i in many),
            trials=tuple(replace(trial, number=i, workload=f"layer{i}") for i in many),
        )
    )
    root = ElementTree.fromstring(chart)
    names = [e for e in root.iter() if e.tag.endswith("text") and "layer" in (e.text or "")]
    assert len(names) == len(many)
    height = float(root.attrib["viewBox"].split()[3])
    assert all(float(e.attrib["y"]) < height for e in names)


def test_numbers_of_the_summary_are_on_the_page() -> None:
    text = page(a_summary()).replace("\u202f", " ")
    for words in ("3.33×", "6 000", "97.0 %", "on all 100 samples", "run_timeout", "about 1 s"):
        assert words in text, words


def test_what_the_given_order_of_layers_would_take_is_told_where_it_is_more() -> None:
    summary = a_summary()
    assert summary.arena is not None
    assert "in the given order" not in page(summary)
    arena = replace(summary.arena, given_nbytes=8192)
    assert "in the given order of layers 8\u202f192" in page(replace(summary, arena=arena))


def test_devices_without_counters_have_microseconds_on_the_page() -> None:
    text = page(by_the_clock(a_summary()))
    for words in ("3.03×", "<b>660.0 us</b><span>in kernels", "<b>300.0 us</b>", "812.3 us"):
        assert words in text, words
    assert "time, 1 = untuned schedule" in text
    assert "cycles in kernels" not in text


def test_differing_samples_are_loud() -> None:
    summary = a_summary()
    assert summary.accuracy
    summary = replace(summary, accuracy=replace(summary.accuracy, differing=3))
    assert "<strong class=bad>3 of 100 samples differ</strong>" in page(summary)


def test_promises_and_what_was_done_for_them_are_on_the_page() -> None:
    summary = a_summary()
    assert summary.accuracy
    assert summary.accuracy.judgement
    assert "<p>Promise of 1 point kept: 1 point of top-1 of labels lost" in page(summary)
    broken = replace(summary.accuracy.judgement, promise=Promise(points=0.5, is_said=True))
    shares = (("before", 0.25), ("weights", 0.75))
    text = page(
        replace(
            summary,
            accuracy=replace(summary.accuracy, judgement=broken),
            noise=(
                NoiseRow(name="<conv>", ratio_db=20.0, shares=shares),
                NoiseRow(name="same", ratio_db=math.inf, shares=()),
            ),
            plans=(
                RemedyPlan(remedies=(), points=1.0, cycles=4_000),
                RemedyPlan(
                    remedies=(
                        Remedy(layer="a<b>", kind="wide"),
                        Remedy(layer="c", kind="float", macs=12_345),
                    ),
                    points=0.25,
                    cycles=9_000,
                    basis="differences",
                ),
            ),
        )
    )
    for words in (
        "<p class=bad>Promise of 0.5 points broken",
        "&lt;conv&gt;: 20.0 dB; noise: before 25 %, weights 75 %",
        "same: exact",
        'title="weights of 16 bits: a&lt;b&gt;; in float: c"',
        ">weights of 16 bits in 1 layer, floats in 1 layer<",
        ">measured where plans differ<",
        ">estimated<",
        "0.25 points, 9k cycles (measured where plans differ): weights of 16 bits: a&lt;b",
        "2.25×",
        "0.25",
    ):
        assert words in text, words
    for picture in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(picture)


def test_names_are_escaped() -> None:
    attack = "<script>alert(1)</script>"
    text = page(a_summary(title=attack, name=attack))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_a_run_without_anything_still_has_a_report() -> None:
    full = a_summary()
    session = replace(full.session, trials_per_second=None, first_measured_seconds=None)
    empty = replace(
        full, workloads=(), layers=(), trials=(), spans=(), arena=None, timeline=None,
        accuracy=None, session=session,
    )  # fmt: skip
    HTMLParser().feed(page(empty))


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (
            counted_profile(),
            ["3 000 cycles", "on the processor", "2.00×", "1 500 cycles predicted"],
        ),
        (timed_profile(clock_mhz=100), ["30.0 us", "3.0 %", "at 100 MHz", "microseconds"]),
    ],
)
def test_a_profile_is_drawn_in_the_device_s_units(profile: Profile, words: list[str]) -> None:
    text = page(replace(a_summary(), profile=profile)).replace("\u202f", " ")
    for word in ("The program, layer by layer", *words):
        assert word in text, word
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 5
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_layers_of_a_profile_are_escaped() -> None:
    attack = "<script>alert(1)</script>"
    text = page(replace(a_summary(), profile=counted_profile(attack)))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_writing_leaves_no_draft(tmp_path: Path) -> None:
    write_report(a_summary(), tmp_path / "report.html")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_busy_seconds_count_overlaps_once() -> None:
    spans = [(0.0, 1.0), (0.5, 2.0), (3.0, 4.0), (3.2, 3.5)]
    lane = [
        Span(lane="sim0", kind="run", label="", begin_seconds=b, end_seconds=e) for b, e in spans
    ]
    assert busy_seconds(lane) == pytest.approx(3.0)


def test_close_instructions_of_one_kind_are_drawn_as_one() -> None:
    def event(name: str, begin: int, end: int) -> TimelineEvent:
        return TimelineEvent(module="compute", name=name, begin_cycle=begin, end_cycle=end)

    events = [event("GEMM", 0, 10), event("gemm", 12, 20), event("alu max", 21, 25)]
    assert list(merged(events, 5)) == [("gemm", 0, 20, 2), ("alu", 21, 25, 1)]
    assert list(merged(events, 1)) == [
        ("gemm", 0, 10, 1),
        ("gemm", 12, 20, 1),
        ("alu", 21, 25, 1),
    ]


def test_alternating_instructions_are_no_more_bars_than_pixels() -> None:
    events = [
        TimelineEvent(
            module="load",
            name="load inp" if number % 2 else "load wgt",
            begin_cycle=10 * number,
            end_cycle=10 * number + (9 if number % 2 else 4),
        )
        for number in range(3000)
    ]
    bars = list(drawable(events, 100))
    assert bars[0] == ("load inp", 0, 99, 10)
    assert len(bars) == 300
    assert sum(count for *_, count in bars) == 3000
    assert list(drawable([], 100)) == []


def test_scales_and_short_numbers() -> None:
    assert AxisScale(0, 10, 0, 100)(5) == 50
    assert AxisScale(1, 100, 0, 100, logarithmic=True)(10) == pytest.approx(50)
    assert AxisScale(0, 9, 0, 1).ticks(5) == [0, 2, 4, 6, 8]
    assert [short(v) for v in (950, 1234, 2.5e6)] == ["950", "1.23k", "2.5M"]


def test_the_trace_has_an_event_per_span_and_instruction() -> None:
    summary = a_summary()
    assert summary.timeline
    events = json.loads(chrome_trace(summary))["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(summary.spans) + len(summary.timeline.events)
    assert all(e["dur"] >= 0 for e in complete)


def test_a_program_that_takes_many_times_its_kernels_is_told_everywhere() -> None:
    usual = a_summary()
    assert usual.best.cycles is not None
    odd = replace(usual, network_cycles=40 * usual.best.cycles)
    said = "the whole program takes 40.0 times what its parts take one by one"
    assert said in page(odd)
    assert said not in page(usual)
    assert brief(odd)["network_by_kernels"] == 40.0
    assert brief(odd)["remark"].startswith(said)
    assert brief(usual)["remark"] == ""
