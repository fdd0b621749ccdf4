"""A night as JUnit XML, which CI systems show as tests: a suite a target, a test a model."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from tilefarm.printable import printable

from driver.jobs.nightly.outputs.rows import NightRow, night_rows
from driver.jobs.nightly.records import Night, Verdict
from driver.jobs.nightly.zoo_history import ZooHistory


def junit_xml(zoo: ZooHistory, night: Night) -> bytes:
    """What is slower or answers otherwise has failed; what was not measured is an error; what has
    nothing to be compared with is skipped.
    """
    rows = night_rows(zoo, night)
    root = Xml.Element("testsuites", name=printable(zoo.zoo))
    for target in dict.fromkeys(row.history.row.target for row in rows):
        _suite(root, night, target, [row for row in rows if row.history.row.target == target])
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True))


def _suite(root: Xml.Element, night: Night, target: str, rows: Sequence[NightRow]) -> None:
    verdicts = [row.judged.verdict for row in rows]
    suite = Xml.SubElement(
        root,
        "testsuite",
        name=printable(target),
        timestamp=night.name.removesuffix("Z"),
        tests=str(len(rows)),
        errors=str(verdicts.count(Verdict.NOT_MEASURED)),
        failures=str(sum(map(_has_failed, verdicts))),
        skipped=str(verdicts.count(Verdict.INSUFFICIENT_HISTORY)),
    )
    for row in sorted(rows, key=lambda each: each.history.row):
        _case(suite, row)


def _has_failed(verdict: Verdict) -> bool:
    return verdict.fails and verdict is not Verdict.NOT_MEASURED


def _case(suite: Xml.Element, row: NightRow) -> None:
    verdict, said = row.judged.verdict, "\n".join(row.lines)
    names = {"classname": printable(row.history.row.target), "name": row.history.row.model}
    case = Xml.SubElement(suite, "testcase", {k: printable(v) for k, v in names.items()})
    if verdict is Verdict.NOT_MEASURED:
        Xml.SubElement(case, "error", message=row.title, type=verdict.value).text = said
    elif verdict.fails:
        Xml.SubElement(case, "failure", message=row.title, type=verdict.value).text = said
    elif verdict is Verdict.INSUFFICIENT_HISTORY:
        Xml.SubElement(case, "skipped", message=row.title)
    else:
        Xml.SubElement(case, "system-out").text = f"{row.title}\n{said}"
