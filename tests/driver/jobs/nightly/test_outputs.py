"""What a night says to machines: each format as those read it, whatever the names are."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from kit.reports.nights import zoo_history
from prometheus_client.parser import text_string_to_metric_families

from driver.jobs.nightly.outputs import (
    github_annotations,
    junit_xml,
    metrics_text,
    step_summary,
    webhook_body,
)
from driver.jobs.nightly.records import Judged, Night, Row, Verdict
from driver.jobs.nightly.zoo_history import ZooHistory

_HOSTILE = "\n::error::x\r]]>&<b>\"'\\|\x1b[2J\x00"


def judged_zoo(
    *verdicts: Verdict, hostile: str = "", quiet: Verdict | None = None
) -> tuple[ZooHistory, Night]:
    """A zoo whose last night has these verdicts, one after the other; `quiet` says no more."""
    zoo = zoo_history(3, models=len(verdicts), hostile=hostile)
    night = zoo.nights[-1]
    rows = []
    for history, verdict in zip(zoo.rows[::2], verdicts, strict=True):
        judged = Judged(
            night=night.name,
            row=history.row,
            verdict=verdict,
            change=0.03 if verdict is Verdict.SLOWER else None,
            why=f"for {verdict.value}{hostile}" if verdict is not quiet else "",
        )
        measured = verdict is not Verdict.NOT_MEASURED
        samples = history.samples if measured else history.samples[:-2]
        rows.append(replace(history, judged=(judged,), samples=samples))
    return replace(zoo, rows=tuple(rows)), night


@pytest.mark.parametrize("hostile", ["", _HOSTILE])
def test_junit_has_a_case_a_row_and_counts_them(hostile: str) -> None:
    zoo, night = judged_zoo(*Verdict, hostile=hostile, quiet=Verdict.UNCHANGED)
    (suite,) = Xml.fromstring(junit_xml(zoo, night))
    outcomes = Counter(each.tag for case in suite for each in case)
    assert outcomes == {"failure": 2, "error": 1, "skipped": 1, "system-out": 4}
    told = {kind: int(suite.get(kind, "")) for kind in ("tests", "failures", "errors", "skipped")}
    assert told == {"tests": 8, "failures": 2, "errors": 1, "skipped": 1}
    assert "for SLOWER" in "".join(suite.itertext())


@pytest.mark.parametrize("hostile", ["", _HOSTILE])
def test_github_gets_a_line_an_annotation_and_none_from_a_name(hostile: str) -> None:
    zoo, night = judged_zoo(*Verdict, hostile=hostile, quiet=Verdict.UNCHANGED)
    lines = list(github_annotations(zoo, night))
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 3 + ["::notice"] * 3
    assert not any("\n" in line or "\r" in line for line in lines)
    assert lines[0].startswith("::error title=model")
    assert "for SLOWER" in lines[0]


def test_annotations_that_github_would_drop_are_counted() -> None:
    zoo, night = judged_zoo(*[Verdict.SLOWER] * 14)
    lines = list(github_annotations(zoo, night))
    assert len(lines) == 10
    assert "5 more rows" in lines[-1]
    assert len(list(github_annotations(*judged_zoo(*[Verdict.SLOWER] * 9)))) == 9


@pytest.mark.parametrize("hostile", ["", _HOSTILE])
def test_the_step_summary_is_a_table_of_what_has_changed(hostile: str) -> None:
    zoo, night = judged_zoo(*Verdict, hostile=hostile, quiet=Verdict.UNCHANGED)
    lines = step_summary(zoo, night).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + 6
    assert all(line.count("|") == 6 for line in rows)
    assert "▲ 1 slower" in lines[2]
    assert not any("<b>" in line for line in lines)


@pytest.mark.parametrize("hostile", ["", _HOSTILE])
def test_prometheus_reads_every_metric(hostile: str) -> None:
    zoo, night = judged_zoo(*Verdict, hostile=hostile, quiet=Verdict.UNCHANGED)
    families = {f.name: f for f in text_string_to_metric_families(metrics_text(zoo, night))}
    verdicts = families["tilefarm_nightly_verdict"].samples
    assert sum(sample.value for sample in verdicts) == 8
    assert len(verdicts) == 64
    assert sum(sample.value for sample in families["tilefarm_nightly_fails"].samples) == 3
    assert len(families["tilefarm_nightly_cycles"].samples) == 7
    assert [sample.value for sample in families["tilefarm_nightly_change_ratio"].samples] == [0.03]


def test_a_webhook_has_a_text_for_people_and_the_rows_for_scripts() -> None:
    zoo, night = judged_zoo(*Verdict, hostile=_HOSTILE, quiet=Verdict.UNCHANGED)
    body = json.loads(webhook_body(zoo, night))
    first, *others = body["text"].splitlines()
    assert "1 slower, 1 changed answer" in first
    assert len(others) == len(body["rows"]) == 6
    assert re.match("▲ model.*slower", others[0])
    assert body["fails"] is True
    assert Row(body["rows"][0]["model"], body["rows"][0]["target"]) in {h.row for h in zoo.rows}


def test_a_change_that_its_gate_lets_pass_is_told() -> None:
    zoo, night = judged_zoo(Verdict.UNCHANGED)
    assert "for UNCHANGED" in json.loads(webhook_body(zoo, night))["rows"][0]["lines"]


def test_a_quiet_night_says_so_everywhere() -> None:
    zoo, night = judged_zoo(Verdict.UNCHANGED, quiet=Verdict.UNCHANGED)
    assert list(github_annotations(zoo, night)) == []
    assert "| row |" not in step_summary(zoo, night)
    assert json.loads(webhook_body(zoo, night))["fails"] is False
    (suite,) = Xml.fromstring(junit_xml(zoo, night))
    assert suite.get("failures") == "0"
