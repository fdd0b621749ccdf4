"""A feed of changes for readers of feeds (Atom, RFC 4287), and the page's content as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final
from xml.etree import ElementTree as Xml

from tilefarm.printable import printable

from driver.jobs.nightly.records import Judged, Night
from driver.jobs.nightly.words import change_text, row_file, verdict_words
from driver.jobs.nightly.zoo_history import RowHistory, ZooHistory

SCHEMA: Final = 1
_ENTRIES: Final = 100
_ATOM: Final = "http://www.w3.org/2005/Atom"


def feed(zoo: ZooHistory) -> bytes:
    """`feed.xml`: the latest changes, the newest first."""
    Xml.register_namespace("", _ATOM)
    root = Xml.Element(f"{{{_ATOM}}}feed")
    _text(root, "title", f"{zoo.zoo}, night by night")
    _text(root, "id", f"urn:tilefarm:{printable(zoo.zoo)}")
    _text(root, "updated", _when(zoo.last))
    for night, history, judged in _latest(zoo):
        _entry(root, zoo, night, history, judged)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True))


def nights_json(zoo: ZooHistory) -> str:
    """`nights.json`: the latest night of every row, for scripts."""
    rows = [_row_document(history) for history in zoo.rows]
    nights = [asdict(night) for night in zoo.nights]
    return json.dumps({"schema": SCHEMA, "zoo": zoo.zoo, "nights": nights, "rows": rows})


def _latest(zoo: ZooHistory) -> Iterator[tuple[Night, RowHistory, Judged]]:
    left = _ENTRIES
    for night in reversed(zoo.nights):
        for history in zoo.rows:
            judged = history.verdict(night.name)
            if judged is None or judged.is_quiet:
                continue
            yield night, history, judged
            left -= 1
            if not left:
                return


def _entry(
    root: Xml.Element, zoo: ZooHistory, night: Night, history: RowHistory, judged: Judged
) -> None:
    entry = Xml.SubElement(root, f"{{{_ATOM}}}entry")
    title = f"{history.row}: {verdict_words(judged.verdict)} {change_text(judged)}".strip()
    _text(entry, "title", title)
    _text(entry, "id", f"urn:tilefarm:{printable(zoo.zoo)}:{night.name}:{history.row}")
    _text(entry, "updated", _when(night))
    link = f"rows/{row_file(history.row)}#{night.name.partition('T')[0]}"
    Xml.SubElement(entry, f"{{{_ATOM}}}link", href=link)
    author = Xml.SubElement(entry, f"{{{_ATOM}}}author")
    _text(author, "name", "tilefarm")
    _text(entry, "content", "\n".join(history.lines(judged)))


def _text(parent: Xml.Element, name: str, words: str) -> None:
    Xml.SubElement(parent, f"{{{_ATOM}}}{name}").text = "\n".join(
        printable(line) for line in words.splitlines()
    )


def _when(night: Night | None) -> str:
    seconds = 0.0 if night is None else night.ended or night.began
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _row_document(history: RowHistory) -> dict[str, Any]:
    known, judged = history.known[-1:], history.judged[-1:]
    document: dict[str, Any] = asdict(history.row)
    for sample in known:
        document |= {
            "night": sample.night,
            "clock": sample.machine.clock.value,
            "cost": sample.time.cost,
            "low": sample.time.low,
            "high": sample.time.high,
            "machine": sample.machine.name,
            "commit": sample.order.commit,
            "score": sample.answers.score,
            "differing": sample.answers.differing,
        }
    for each in judged:
        document |= {"verdict": each.verdict.value, "change": each.change, "why": each.why}
    return document
