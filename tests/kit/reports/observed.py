"""What a run leaves to whoever looks at it afterwards: logs that agree, and a sound trace."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
_ROUNDING_MICROSECONDS = 0.0005
"""Times are whole nanoseconds; their sum in floating point may be off by less than half of one."""


def log_lines(file: Path) -> list[dict[str, str]]:
    """The lines of a log that are events of ours."""
    text = file.read_text(errors="replace").splitlines()
    return [dict(_WORD.findall(line)) for line in text if line.startswith("at=")]


def candidate_through_the_logs(folder: Path) -> Mapping[str, dict[str, str]]:
    """The lines about one candidate that was measured, by component."""
    trial = next(line for line in log_lines(folder / "search.log") if line["status"] == "ok")
    found = {"search": trial}
    for file in ("compile.log", f"{trial['device']}.log"):
        for line in log_lines(folder / file):
            if line.get("candidate") == trial["candidate"]:
                found[line["component"]] = line
    return found


def assert_logs_agree(folder: Path) -> None:
    """One candidate, one run, one artifact and one device have the same names in every log."""
    lines = candidate_through_the_logs(folder)
    device = lines["search"]["device"]
    assert set(lines) == {"search", "compile", device}
    for key in ("candidate", "artifact", "status"):
        assert len({line[key] for line in lines.values()}) == 1, key
    run = lines["search"]["run"]
    assert lines[device]["run"] == run
    leases = [line for line in log_lines(folder / "tracker.log") if line["event"] == "leased"]
    assert (run, device) in {(line["run"], line["device"]) for line in leases}
    assert {line["run"] for line in log_lines(folder / "driver.log")} == {run}


def events_of(trace: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The events of a Chrome trace, and the names of its processes."""
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    return events, named


def bars_of(trace: str) -> Counter[tuple[str, str, str, str]]:
    """How many bars there are of each process, name, category and candidate; no instructions."""
    events, named = events_of(trace)
    return Counter(
        (named[e["pid"]], e["name"], e["cat"], e.get("args", {}).get("candidate", ""))
        for e in events
        if e["ph"] == "X" and e["cat"] != "instruction"
    )


def assert_sound_trace(trace: str, processes: Iterable[str]) -> None:
    """Lanes are named, slices nest, arrows begin and end in slices, all processes appear."""
    events, named = events_of(trace)
    assert set(named.values()) >= set(processes)
    slices = [e for e in events if e["ph"] == "X"]
    lanes = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices} == lanes
    by_lane: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for each in slices:
        assert each["ts"] >= 0
        assert each["dur"] >= 0
        by_lane[each["pid"], each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    for intervals in by_lane.values():
        _assert_nested(intervals)
    _assert_arrows(events, by_lane)


def _assert_nested(intervals: list[tuple[float, float]]) -> None:
    around: list[float] = []
    for begin, end in sorted(intervals, key=lambda each: (each[0], -each[1])):
        while around and around[-1] <= begin + _ROUNDING_MICROSECONDS:
            around.pop()
        assert not around or end <= around[-1] + _ROUNDING_MICROSECONDS
        around.append(end)


def _assert_arrows(
    events: list[dict[str, Any]], by_lane: Mapping[tuple[int, int], list[tuple[float, float]]]
) -> None:
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert set(starts) == set(ends)
    for number, start in starts.items():
        assert start["ts"] <= ends[number]["ts"] + _ROUNDING_MICROSECONDS
        for each in (start, ends[number]):
            assert any(
                begin - _ROUNDING_MICROSECONDS <= each["ts"] <= end + _ROUNDING_MICROSECONDS
                for begin, end in by_lane[each["pid"], each["tid"]]
            )
