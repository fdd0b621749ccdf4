"""`tilefarm history list`: the nights, with their verdicts."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tilefarm.command_line import whole_from
from tilefarm.printable import printable

from driver.commands.history_actions.choosing import opened
from driver.report.terminal.text_table import text_table

if TYPE_CHECKING:
    from driver.jobs.nightly.history.history import History
    from driver.jobs.nightly.records import Night


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--last", type=whole_from(1), default=30, metavar="N", help="nights (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with opened(args.history, read_only=True) as history:
        nights = history.nights()[-args.last :]
        counts = _counts(history, args.last)
        if args.json:
            rows = [asdict(night) | {"verdicts": counts[night.name]} for night in nights]
            print(json.dumps({"zoo": history.zoo, "nights": rows}))
            return 0
        for line in _lines(history, nights, counts):
            print(printable(line))
    return 0


def _counts(history: History, last: int) -> dict[str, dict[str, int]]:
    """How often each verdict, by night."""
    counts: dict[str, Counter[str]] = {night.name: Counter() for night in history.nights()}
    for judged in history.verdicts(last=last):
        counts[judged.night][judged.verdict.value] += 1
    return {name: dict(found) for name, found in counts.items()}


def _lines(history: History, nights: list[Night], counts: dict[str, Any]) -> Iterator[str]:
    from driver.jobs.nightly.history.night_order import clock_went_back

    yield f"zoo {history.zoo}"
    rows = [
        (
            night.name,
            _ended(night),
            ", ".join(f"{number} {name}" for name, number in counts[night.name].items()),
        )
        for night in nights
    ]
    yield from text_table(("night", "ended", "verdicts"), rows)
    for before, night in pairwise(nights):
        if words := clock_went_back(night, before):
            yield words


def _ended(night: Night) -> str:
    if night.ended is None:
        return "not yet"
    return night.why_ended or "whole"
