"""`tilefarm replay`: a compile that crashed, hung or was the best, once more and watched."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.command_line import MOST_SECONDS
from tilefarm.errors import DataError, SettingsError

from driver.commands.options.networks import add_plugin_option

if TYPE_CHECKING:
    from driver.farm.compiling.replaying import ReplayResult
    from driver.farm.compiling.reproducers import Reproducer

_MOST_MIB: Final = 1 << 24
_EPILOG = """\
examples:
  tilefarm replay                                   what the runs under tilefarm-out have kept
  tilefarm replay 3f1c0a9b2d44                      compile it again, and say where it ends
  tilefarm replay 3f1c0a9b2d44 --out best --json    of the run in the folder `best`
  tilefarm replay 3f1c0a9b2d44 --timeout 5 --memory 512

A run keeps compiles that crashed or hung, with the IR that the last good step left, and the best
schedule of every workload. DIGEST is the record's or the job's; its first digits do. The compile
runs in a process of its own, which the limits end. What a run with passes of a --plugin has kept
needs the same file again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("digest", nargs="?", metavar="DIGEST", help="which one (default: list them)")
    option("--out", type=Path, metavar="DIR", help="of one run (default: all in tilefarm-out)")
    option(
        "--timeout",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds of work (default: 30)",
    )
    option("--memory", type=int, default=4096, metavar="MIB", help="MiB (default: 4096)")
    add_plugin_option(parser)
    option("--ir", action="store_true", help="print the last step's IR of a good compile, too")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if not 0 < args.timeout <= MOST_SECONDS or not 0 < args.memory <= _MOST_MIB:
        raise SettingsError(
            f"--timeout {args.timeout:g} --memory {args.memory}: more than 0 of each, and at most"
            f" {MOST_SECONDS:g} seconds and {_MOST_MIB} MiB",
            "leave them out for the defaults",
        )
    from driver.farm.compiling.replaying import ReplayLimits, kept_compile, replay

    folders = _folders(args.out)
    if args.digest is None:
        return _list(folders, as_json=args.json)
    kept = kept_compile(args.digest, folders)
    _require_passes(kept)
    limits = ReplayLimits(seconds=args.timeout, memory_nbytes=args.memory << 20)
    with tempfile.TemporaryDirectory(prefix="tilefarm-replay-") as scratch:
        verdict = replay(kept.job, limits, Path(scratch))
    if args.json:
        print(json.dumps(_document(kept, verdict)))
    else:
        for line in _lines(kept, verdict, with_ir=args.ir):
            print(line)
    return 0


def _require_passes(kept: Reproducer) -> None:
    """Nothing if the passes of users that the compile was lowered with are loaded.

    Raises:
        PassError: one is missing, or of another version of its plugin.
    """
    from tilefarm.artifact import ProgramJob

    from compile_worker.plugins.passes import require_passes

    job = kept.job
    for kernel in job.kernels if isinstance(job, ProgramJob) else (job,):
        require_passes(kernel.trace)


def _folders(out: Path | None) -> list[Path]:
    """Where runs have kept compiles."""
    if out is None:
        return sorted(Path("tilefarm-out").glob("*/kept"))
    if not out.is_dir():
        raise DataError(f"{out}: no such folder", "--out is the folder that a run wrote")
    return [out / "kept"]


def _list(folders: list[Path], *, as_json: bool) -> int:
    from driver.farm.compiling.replaying import rows

    titles = ("digest", "job", "status", "compiles")
    found = list(rows(folders))
    if as_json:
        print(json.dumps([dict(zip(titles, row, strict=True)) for row in found]))
        return 0
    for row in (titles, *found):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, (12, 12, 15, 0), strict=True))
        )
    return 0


def _lines(kept: Reproducer, verdict: ReplayResult, *, with_ir: bool) -> Iterator[str]:
    from tilefarm.measurement import Status

    from driver.farm.compiling.replaying import title

    is_good = verdict.status is Status.OK
    yield f"job      {kept.job.digest.short}: {title(kept.job)}"
    yield f"kept     {kept.status.value}" + (f": {kept.why}" if kept.why else "")
    yield f"verdict  {verdict.status.value}: {verdict.why}"
    if not is_good:
        yield f"stage    {verdict.stage}; before it: {verdict.last.name or 'nothing that is known'}"
    for line in verdict.said:
        yield f"said     {line}"
    if verdict.last.ir and (with_ir or not is_good):
        yield f"IR after {verdict.last.name}:"
        yield verdict.last.ir


def _document(kept: Reproducer, verdict: ReplayResult) -> dict[str, Any]:
    from driver.farm.compiling.job_json import job_document

    return {
        "job": kept.job.digest.hex,
        "job_document": job_document(kept.job),
        "kept": {"digest": kept.digest.hex, "status": kept.status.value, "why": kept.why},
        "status": verdict.status.value,
        "why": verdict.why,
        "stage": verdict.stage,
        "after": verdict.last.name,
        "ir": verdict.last.ir,
        "said": list(verdict.said),
    }
