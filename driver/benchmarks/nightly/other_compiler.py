"""The compiler with one pass left out, for the processes of a night: edited sources, elsewhere.

Python loads a `sitecustomize` from its path before all else. This one has the finder of an editable
install take the package from the copy; whoever asks for the digest of the code sees that as well.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tilefarm.code import code_folder
from tilefarm.errors import InfraError

_PACKAGE: Final = "compile_worker"
_PIPELINE: Final = "machines/vta/pipeline.py"
_PASS: Final = '    Pass("stagger_stores", stagger_stores, Stage.EXPLICIT),\n'
"""Programs are right without it, and some take other cycles."""
_IMPORT: Final = "stagger_stores"
_REDIRECT: Final = """\
import sys

for finder in sys.meta_path:
    files = getattr(finder, "known_source_files", {{}})
    for name, path in files.items():
        if name.partition(".")[0] == {package!r}:
            files[name] = path.replace({source!r}, {copy!r}, 1)
"""


def other_compiler(folder: Path) -> list[str]:
    """What stands before a command, so that its processes compile with the changed pass.

    Args:
        folder: gets the sources.

    Raises:
        InfraError: the pass is not where it was, or this is no editable install.
    """
    source, copy = code_folder(_PACKAGE), folder / _PACKAGE
    shutil.copytree(source, copy)
    pipeline = copy / _PIPELINE
    text = pipeline.read_text()
    if text.count(_PASS) != 1:
        raise InfraError(f"{source / _PIPELINE} has no {_IMPORT} to leave out")
    pipeline.write_text(text.replace(_PASS, ""))
    redirect = _REDIRECT.format(package=_PACKAGE, source=str(source), copy=str(copy))
    (folder / "sitecustomize.py").write_text(redirect)
    return ["env", f"PYTHONPATH={folder}"]
