"""`tilefarm conformance`: ONNX's own test cases through the importer, by operator."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.plural import plural
from tilefarm.system_errors import unwritable

if TYPE_CHECKING:
    from driver.network import ConformanceResult

EXIT_FAILED = 1

_EPILOG = """\
examples:
  tilefarm conformance
  tilefarm conformance --cases folder/of/cases --json
  tilefarm conformance --reasons FILE     after an operator was added: why cases are skipped

The cases of the onnx package: one operator each as the format's authors made them (float and
integer), and layers that PyTorch exported (converted). A case is skipped if the importer refuses
it; why is in driver/network/frontend/conformance/conformance.json. One that is taken must give the
published answers, in float32, to a thousandth; those in bfloat16, to a 128th of the largest.

exit codes: 0 none failed; 1 a case failed; 2 the folder cannot be used
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--cases", type=Path, metavar="FOLDER", help="with NAME/model.onnx (default: onnx's)")
    option("--reasons", type=Path, metavar="FILE.json", help="write why cases are skipped")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.network import conformance_cases, conformance_results, reasons_text

    found = list(conformance_results(conformance_cases(args.cases)))
    if args.reasons is not None:
        try:
            args.reasons.write_text(reasons_text(found), encoding="utf-8")
        except OSError as error:
            raise unwritable(args.reasons, error, "name a file in a folder that there is") from None
    if args.json:
        print(json.dumps({"sums": sums(found), "cases": [asdict(each) for each in found]}))
    else:
        for line in lines(found):
            print(line)
    return EXIT_FAILED if any(each.verdict == "failed" for each in found) else 0


def sums(found: Sequence[ConformanceResult]) -> dict[str, dict[str, int]]:
    """Cases by kind and verdict."""
    kinds = dict.fromkeys(each.kind for each in found)
    return {
        kind: {
            verdict: sum(each.kind == kind and each.verdict == verdict for each in found)
            for verdict in ("passed", "skipped", "failed")
        }
        for kind in kinds
    }


def lines(found: Sequence[ConformanceResult]) -> Iterator[str]:
    """A row an operator of which a case was taken, what failed, and the sums."""
    yield f"{'operator':28} {'passed':>6} {'skipped':>7} {'failed':>6}  mostly skipped because"
    for operator in sorted({each.operator for each in found if each.verdict != "skipped"}):
        of_it = [each for each in found if each.operator == operator]
        count = Counter(each.verdict for each in of_it)
        why = Counter(each.why for each in of_it if each.verdict == "skipped").most_common(1)
        yield (
            f"{operator[:28]:28} {count['passed']:6} {count['skipped']:7} {count['failed']:6}"
            f"  {why[0][0][:46] if why else ''}"
        ).rstrip()
    never = Counter(each.operator for each in found)
    for operator in {each.operator for each in found if each.verdict != "skipped"}:
        del never[operator]
    cases, operators = plural(never.total(), "case"), plural(len(never), "operator")
    yield f"and {cases} of {operators} of which none is taken"
    yield ""
    yield from (f"FAILED {each.name}: {each.why}" for each in found if each.verdict == "failed")
    for kind, of_kind in sums(found).items():
        yield f"{kind:10} " + ", ".join(f"{n} {verdict}" for verdict, n in of_kind.items())
