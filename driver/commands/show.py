"""`tilefarm show`: what becomes of a workload while it is compiled, step by step."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.errors import SettingsError
from tilefarm.printable import printable_lines
from tilefarm.quiet import quiet_libraries
from tilefarm.system_errors import unwritable

from driver.commands.options.networks import MODEL, add_network_options, source_of
from driver.commands.options.shared import add_target

if TYPE_CHECKING:
    from tilefarm.target import Target
    from tilefarm.trace import Trace
    from tilefarm.workload import Workload

    from driver.commands.compile_steps.choosing import Listed
    from driver.commands.compile_steps.steps import CompileSteps
    from driver.program.vta.schedules import Choice
    from driver.program.vta.stream import Stream

_EPILOG = """\
examples:
  tilefarm show zoo:resnet18                                 the workloads of a network
  tilefarm show zoo:resnet18 --workload 2                    the steps of compiling the second
  tilefarm show zoo:resnet18 --workload 2 --after lower_dma  the text after one step
  tilefarm show zoo:resnet18 --workload 2 --after 7 --diff   what step 7 of the schedule changed
  tilefarm show net.onnx --calibrate data.npz --workload conv2d --best tilefarm-out/net
  tilefarm show zoo:digits --workload dense --trace mine.json --against default
  tilefarm show zoo:digits --workload 3 --trace predicted --html steps.html
  tilefarm show --workload workload.json --after llvm
  tilefarm show zoo:digits --workload 3 --pass mine.py:tidy@flatten --after tidy

A workload is named by its number in the list, (the start of) its name, a step of the network, or
its operator where that is one alone. The steps, in order: `nest`, the plain loops; the schedule's
primitives by number, and `scheduled` for the last of them; the compiler's passes by name; `llvm`;
and `stream`, the instructions of a run on the simulator with their cycles. `--after all` prints
them all; a page has both ends of a long stream. Every text but the last two is IR that the
compiler's parser reads back.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("model", nargs="?", metavar=MODEL, help="a network")
    option("--workload", metavar="W", help="of the network's, or a JSON file with one")
    option("--list", action="store_true", help="the network's workloads (the default without W)")
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument(
        "--trace", metavar="FILE.json|default|predicted", help="the schedule (default: default)"
    )
    schedule.add_argument("--point", type=Path, metavar="FILE.json", help="values of the space")
    schedule.add_argument(
        "--best", type=Path, metavar="RUN", help="the best schedule in the folder of a run"
    )
    option("--after", metavar="STEP", help="print the text after a step, or after `all`")
    option("--diff", action="store_true", help="of each text only what the step changed")
    option("--against", metavar="FILE.json|default|predicted", help="compare with another schedule")
    option(
        "--pass",
        action="append",
        default=[],
        dest="passes",
        metavar="FILE.py:FUNCTION@STEP",
        help="a pass of yours after a step; may be given several times",
    )
    option("--html", type=Path, metavar="OUT.html", help="a page that steps through all of it")
    add_target(parser)
    option("--json", action="store_true", help="one JSON document")
    add_network_options(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    from driver.targets import usable_target

    target = usable_target(args.target)
    from_file = args.model is None and (args.workload or "").endswith(".json")
    if from_file and args.list:
        raise SettingsError(
            f"--list: {args.workload} is one workload, not a network", "leave out --list"
        )
    if from_file:
        from driver.commands.compile_steps.workload_file import read_workload

        return _one(args, read_workload(Path(args.workload), target), target)
    rows = _rows(args, target)
    if args.list or (args.workload is None and len(rows) > 1):
        return _listing(args, rows, target)
    from driver.commands.compile_steps.choosing import chosen

    return _one(args, chosen(rows, args.workload).workload, target)


def _rows(args: argparse.Namespace, target: Target) -> list[Listed]:
    """The network's workloads."""
    from driver.commands.compile_steps.choosing import listed
    from driver.network import forms_of, zoo_names

    if args.model is None:
        raise SettingsError(
            "a network or --workload FILE.json is needed", f"for example {', '.join(zoo_names())}"
        )
    return listed(forms_of(source_of(args), target).network)


def _listing(args: argparse.Namespace, rows: list[Listed], target: Target) -> int:
    """Every workload with its part of the network's arithmetic and the size of its space."""
    from driver.commands.compile_steps.choosing import points_in_space
    from driver.report.terminal.text_table import text_table

    total = sum(row.macs for row in rows) or 1
    points = [points_in_space(row.workload, target) for row in rows]
    if args.json:
        document = [
            {
                "number": row.number,
                "name": row.workload.name,
                "place": row.place,
                "steps": row.steps,
                "macs": row.macs,
                "points": None if size is None else size.points,
                "points_are_exact": None if size is None else size.is_exact,
                "workload": json.loads(row.workload.to_json()),
            }
            for row, size in zip(rows, points, strict=True)
        ]
        print(json.dumps(document))
        return 0
    cells = [
        (
            f"{row.number:3d} {row.workload.name}",
            row.place,
            str(len(row.steps)),
            f"{row.macs:,}".replace(",", " "),
            f"{100 * row.macs / total:.1f} %",
            "-" if size is None else str(size),
            row.steps[0],
        )
        for row, size in zip(rows, points, strict=True)
    ]
    titles = ("  # workload", "runs on", "count", "MACs", "share", "schedules", "first step")
    for line in text_table(titles, cells):
        print(printable_lines(line))
    return 0


def _one(args: argparse.Namespace, workload: Workload, target: Target) -> int:
    """The compile of one workload."""
    from driver.commands.compile_steps.steps import ALL, compiled
    from driver.commands.compile_steps.user_passes import with_user_passes
    from driver.program.vta.schedules import Choice, trace_of

    choice = Choice(trace=args.trace, point=args.point, best_of=args.best)
    trace = trace_of(choice, workload, target)
    if args.against is not None and args.after is None:
        other = trace_of(Choice(trace=args.against), workload, target)
        difference = other.diff(trace)
        if args.json:
            print(json.dumps({"workload": workload.name, "difference": difference.splitlines()}))
        else:
            print(printable_lines(difference or "the schedules are equal"))
        return 0
    made = compiled(workload, trace, target, with_user_passes(args.passes))
    stream = _add_stream(args, made, workload, trace, target)
    if args.html is not None:
        _write_page(args, made, workload, choice, stream)
        return 0
    if args.json and args.against is not None:
        changed = list(_lines(args, made, workload, choice, target))
        print(json.dumps({"workload": workload.name, "difference": changed}))
    elif args.json:
        print(json.dumps(_document(made, workload, trace, stream, target)))
    else:
        for line in _lines(args, made, workload, choice, target):
            print(printable_lines(line))
    if made.refusal is not None and args.after in (None, ALL):
        raise made.refusal
    return 0


def _add_stream(
    args: argparse.Namespace, made: CompileSteps, workload: Workload, trace: Trace, target: Target
) -> Stream | None:
    """Run the kernel where its instructions are wanted; they become the compile's last step."""
    from driver.commands.compile_steps.steps import ALL, STREAM, Shown
    from driver.network import is_accelerated
    from driver.program.vta.stream import stream_of

    wanted = args.after in (STREAM, ALL) or args.html is not None or args.json
    on_processor = not is_accelerated(workload, target)
    if on_processor and args.after == STREAM:
        raise SettingsError(
            f"--after {STREAM}: {workload.name} runs on the processor, without instructions of the"
            " accelerator",
            "--after llvm",
        )
    if not wanted or made.refusal is not None or on_processor:
        return None
    stream = stream_of(workload, trace, target)
    caption = f"instructions of one run and the cycles of each; {stream.spent.cycles} in all"
    made.shown.append(Shown(STREAM, caption, "\n".join(stream.lines), "stream"))
    return stream


def _lines(
    args: argparse.Namespace,
    made: CompileSteps,
    workload: Workload,
    choice: Choice,
    target: Target,
) -> Iterator[str]:
    from driver.commands.compile_steps.steps import ALL, compiled, difference
    from driver.program.vta.schedules import Choice as OtherChoice
    from driver.program.vta.schedules import trace_of

    if args.against is not None:
        other = trace_of(OtherChoice(trace=args.against), workload, target)
        before = compiled(workload, other, target).after(args.after)
        yield from difference(before.text, made.after(args.after).text)
        return
    if args.after is None:
        yield from _overview(made, workload, choice, target)
        return
    for shown in made.shown if args.after == ALL else [made.after(args.after)]:
        if args.after == ALL:
            yield f"# {shown.name}: {shown.caption}"
        yield from made.change(shown) if args.diff else [shown.text]


def _overview(
    made: CompileSteps, workload: Workload, choice: Choice, target: Target
) -> Iterator[str]:
    """What there is to choose; a row a step: what it is, its lines, and how many it changed."""
    from driver.commands.compile_steps.space_lines import space_lines
    from driver.commands.compile_steps.steps import counted
    from driver.report.terminal.text_table import text_table

    yield workload.name
    for spec in workload.tensors:
        yield f"  {spec}"
    yield "  " + ", ".join(f"{name}={value}" for name, value in workload.attrs)
    yield from space_lines(workload, target)
    yield f"schedule: {choice.words}"
    rows = []
    for shown in made.shown:
        more, less = counted(made.change(shown))
        changes = f"+{more} -{less}" if more or less else "="
        lines = shown.text.count("\n") + 1
        rows.append((f"{shown.name:>3}  {shown.caption}", str(lines), changes))
    yield from text_table(("after step", "lines", "changed"), rows)
    yield "`--after STEP` prints a text, `--diff` what changed, `--html FILE` all of it as a page"


def _document(
    made: CompileSteps, workload: Workload, trace: Trace, stream: Stream | None, target: Target
) -> dict[str, Any]:
    from driver.commands.compile_steps.space_lines import space_document

    return {
        "workload": json.loads(workload.to_json()),
        "name": workload.name,
        "space": space_document(workload, target),
        "trace": json.loads(trace.to_json()),
        "steps": [asdict(shown) for shown in made.shown],
        "refusal": None if made.refusal is None else str(made.refusal),
        "cycles": None if stream is None else asdict(stream.spent),
    }


def _write_page(
    args: argparse.Namespace,
    made: CompileSteps,
    workload: Workload,
    choice: Choice,
    stream: Stream | None,
) -> None:
    from driver.commands.compile_steps.page import page_of

    try:
        args.html.write_text(page_of(made, workload, choice.words, stream), encoding="utf-8")
    except OSError as error:
        raise unwritable(args.html, error, "name a file in a folder that there is") from None
    print(args.html)
