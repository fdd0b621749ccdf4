"""A compile process that aborts on an `add` and never ends a `relayout`, after a certain pass."""

from __future__ import annotations

import os
import sys
import threading

from compile_worker.ir.func import Func
from driver.farm.compiling.worker import serve

AFTER = "compact_buffers"


def misbehave(step: str, func: Func) -> None:
    if step == AFTER and func.name.startswith("add_"):
        print("the compiler says its last words", file=sys.stderr, flush=True)
        os.abort()
    if step == AFTER and func.name.startswith("relayout_"):
        threading.Event().wait()


if __name__ == "__main__":
    serve(*sys.argv[1:], watch=misbehave)
