"""A child that starts a process which leaves it and its session, as daemons do; tells both ids."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from driver.farm.compiling.pipes import far_ends

LEAVES = """
import subprocess
print(subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=2).pid)
"""
"""The one between, which ends at once."""


def main(argument: str, *words: str) -> None:
    (pipe,) = far_ends(argument)
    left = subprocess.run([sys.executable, "-c", LEAVES], stdout=subprocess.PIPE, check=True)
    pipe.send((os.getpid(), int(left.stdout)))
    if words:
        sys.exit(int(words[0]))
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
