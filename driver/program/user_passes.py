"""Passes of users in a program: which its kernels were lowered with, and whether these are here.

A manifest names them as schedules do, `["tidy", SHA-256 of its plugin]`, and the plugins as jobs
do, `["passes.py", SHA-256]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilefarm.artifact import ProgramJob
from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import DataError
from tilefarm.readable import readable

from compile_worker.plugins.passes import default_trace, divided


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPass:
    """A pass of a user's that the kernels of a program were lowered with.

    Attributes:
        plugin: the name of the file that declares it.
        digest: of that file.
    """

    name: str
    plugin: str
    digest: Digest

    def __str__(self) -> str:
        return f"{self.name} of {self.plugin} ({self.digest.short})"


def passes_in(job: ProgramJob) -> tuple[ProgramPass, ...]:
    """Those that the schedules of a program's kernels name, each once."""
    files = {each.digest.hex: readable(Path(each.named).name) for each in job.plugins}
    steps = [step for kernel in job.kernels for step in divided(kernel.trace)[1].steps]
    named = dict.fromkeys((str(name), str(digest)) for name, digest in (s.args for s in steps))
    return tuple(
        ProgramPass(name=name, plugin=files.get(digest, ""), digest=Digest(digest))
        for name, digest in named
    )


def passes_document(passes: Iterable[ProgramPass]) -> dict[str, Any]:
    """What a manifest says of them."""
    used = tuple(passes)
    plugins = dict.fromkeys((each.plugin, each.digest.hex) for each in used)
    return {
        "plugins": [list(each) for each in plugins],
        "lower_with": [[each.name, each.digest.hex] for each in used],
    }


def passes_of_document(manifest: Mapping[str, Any]) -> tuple[ProgramPass, ...]:
    """Those of a manifest; none in one of an older version, which did not say.

    Raises:
        ValueError, TypeError: it is damaged.
    """
    files = {digest: str(name) for name, digest in manifest.get("plugins", ())}
    return tuple(
        ProgramPass(name=str(name), plugin=files.get(digest, ""), digest=Digest(digest))
        for name, digest in manifest.get("lower_with", ())
    )


def require_passes_of_run(folder: Path) -> None:
    """Nothing if the program in a run's folder was lowered with the passes that are loaded here.

    Nothing either where the run has left no program: then its records say what does not fit.

    Raises:
        DataError: one is missing, is of another version of its plugin, or was not there then.
    """
    try:
        passes = passes_of_document(read_json(folder / "program" / "manifest.json"))
    except (OSError, ValueError, TypeError, AttributeError):
        return
    here = {str(name): str(digest) for name, digest in (s.args for s in default_trace().steps)}
    for each in passes:
        if each.name not in here:
            raise DataError(
                f"{folder}: its kernels were lowered with {each}, which is not loaded",
                f"--plugin {each.plugin}, the very version",
            )
        if here[each.name] != each.digest.hex:
            raise DataError(
                f"{folder}: its kernels were lowered with {each}; what is loaded is another"
                f" version of it, {here[each.name][:12]}",
                f"--plugin with {each.plugin} as it was then, or tune again with this one",
            )
    if more := sorted(here.keys() - {each.name for each in passes}):
        raise DataError(
            f"{folder}: its kernels were lowered without {', '.join(more)}",
            "leave out that --plugin, or tune again with it",
        )
