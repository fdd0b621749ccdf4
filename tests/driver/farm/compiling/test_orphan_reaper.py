"""What is kept does not outlive its owner, nor does what it has started and left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.farm.in_process import eventually
from kit.living import lives

from driver.farm.compiling.orphan_reaper import dying_with_its_thread
from driver.farm.compiling.pipes import PipeChild
from driver.processes import descendants

TESTS = Path(__file__).parents[2]
OWNER = """
import sys, time
from pathlib import Path
from driver.farm.compiling.pipes import PipeChild

child = PipeChild("kit.children.orphans", [], pipes=1, log=Path(sys.argv[1]), kept=True)
print(*child.pipes[0].recv(), flush=True)
time.sleep(600)
"""


OVERLOOKS = """
import os, subprocess, time
from driver.farm.compiling import orphan_reaper

below = orphan_reaper.descendants
looks = iter([True])
orphan_reaper.descendants = lambda root: [] if next(looks, False) else below(root)
left = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
orphan_reaper._end_all()
print(os.path.exists(f"/proc/{left.pid}"))
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PipeChild]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (TESTS, TESTS.parent))))
    log = tmp_path / "log"
    return lambda *words: PipeChild("kit.children.orphans", words, pipes=1, log=log, kept=True)


def test_one_that_is_ended_takes_all_along(start: Callable[..., PipeChild]) -> None:
    child = start()
    kept, left = child.pipes[0].recv()
    assert {kept, left} <= set(descendants(child.pid)), "the reaper takes in who is left"
    child.kill()
    child.kill()
    assert child.close() == 0
    assert not lives(kept)
    assert not lives(left)


def test_one_that_ends_takes_all_along_and_its_code_is_told(
    start: Callable[..., PipeChild],
) -> None:
    child = start("7")
    _, left = child.pipes[0].recv()
    with pytest.raises(EOFError):
        child.pipes[0].recv()
    eventually(lambda: not lives(child.pid))
    assert not lives(left)
    assert child.close() == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_reaper_that_is_asked_to_end_takes_all_along(
    start: Callable[..., PipeChild], number: int
) -> None:
    child = start()
    kept, left = child.pipes[0].recv()
    os.kill(child.pid, number)
    eventually(lambda: not lives(child.pid))
    assert not lives(kept)
    assert not lives(left)
    child.close()


def test_the_kept_one_goes_with_a_reaper_that_somebody_kills(
    start: Callable[..., PipeChild],
) -> None:
    child = start()
    kept, left = child.pipes[0].recv()
    os.kill(child.pid, signal.SIGKILL)
    eventually(lambda: not lives(kept))
    os.kill(left, signal.SIGKILL)
    child.close()


@pytest.mark.usefixtures("start")
def test_nothing_is_left_of_an_owner_that_was_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        kept, left = map(int, owner.stdout.readline().split())
        owner.kill()
    eventually(lambda: not lives(kept) and not lives(left))


def test_one_that_a_look_at_all_processes_missed_is_ended_too() -> None:
    said = subprocess.run([sys.executable, "-c", OVERLOOKS], stdout=subprocess.PIPE, check=True)
    assert said.stdout.split() == [b"False"]


def test_a_process_whose_owner_has_ended_before_does_not_begin() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "print('begun')"],
        preexec_fn=dying_with_its_thread(2**22 + 1),
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")
