"""The VTA library found, loaded and configured."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from tilefarm.errors import InfraError, TargetError
from tilefarm.target import TARGETS, Target, VtaConfig

import device_server
from device_server.vta.library.library import VtaError, VtaLibrary
from device_server.vta.library.native import find_library

FINISH = [3, 0]
NOP_LOAD = [2 << 7, 0]
POP_PREV, PUSH_PREV = 1 << 3, 1 << 5
NO_MEMORY = np.zeros(0, np.uint8)


def stream(*words: list[int]) -> np.ndarray:
    return np.array(words, np.uint64)


def test_an_unbuilt_library_is_an_error_that_says_how_to_build_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(device_server, "__path__", [str(tmp_path / "device_server")])
    with pytest.raises(InfraError) as caught:
        find_library()
    assert str(tmp_path / "device_server" / "lib") in caught.value.what
    assert "cmake" in caught.value.hint


def test_the_newest_build_wins_and_sanitizer_builds_do_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(device_server, "__path__", [str(tmp_path / "device_server")])
    for folder, age in [("old", 1), ("new", 2), ("sanitize", 3)]:
        file = tmp_path / "build" / folder / "libtilefarm_vta.so"
        file.parent.mkdir(parents=True)
        file.touch()
        os.utime(file, (age, age))
    assert find_library().parent.name == "new"


def test_a_file_that_is_no_library_is_an_infra_error(tmp_path: Path) -> None:
    file = tmp_path / "libtilefarm_vta.so"
    file.write_text("not ELF")
    with pytest.raises(InfraError, match="cannot load"):
        VtaLibrary(file)


def test_impossible_hardware_is_a_target_error(library: VtaLibrary) -> None:
    with pytest.raises(TargetError, match="log_uop_buff_size"):
        library.configure(Target(name="big", vta=VtaConfig(log_uop_buff_size=20)))


def test_a_lone_finish_and_its_timeline(library: VtaLibrary) -> None:
    library.configure(TARGETS["sim"])
    result = library.run_stream(stream(FINISH), NO_MEMORY, timeline=True)
    (event,) = result.timeline
    assert (event.module, event.name) == ("compute", "FINISH")
    assert result.counters.cycles == event.begin_cycle == event.end_cycle - 1
    assert result.counters["instructions"] == 1


def test_functional_only_counts_no_cycles(library: VtaLibrary) -> None:
    library.configure(TARGETS["sim"], functional_only=True)
    result = library.run_stream(stream(FINISH), NO_MEMORY)
    assert (result.counters.cycles, result.counters["instructions"]) == (0, 1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (stream([NOP_LOAD[0] | 1 << 4, 0], FINISH), "load waits for compute->load"),
        (stream([3 | POP_PREV, 0]), "compute waits for load->compute"),
        (stream(FINISH, FINISH), "FINISH before the end"),
        (stream(NOP_LOAD), "does not end with FINISH"),
        (stream([7, 0]), "unknown opcode 7"),
        (stream([NOP_LOAD[0] | PUSH_PREV, 0], FINISH), "neighbour"),
        (stream([2 << 7, 1 | 1 << 16 | 1 << 32], FINISH), "do not lie in one buffer"),
        (stream([2, 0], FINISH), "zero trip count"),
    ],
)
def test_a_stream_that_hardware_would_hang_on_is_refused_with_the_reason(
    library: VtaLibrary, words: np.ndarray, why: str
) -> None:
    library.configure(TARGETS["sim"])
    with pytest.raises(VtaError, match=why) as caught:
        library.run_stream(words, NO_MEMORY)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.what, copy.status) == (caught.value.what, caught.value.status)
    library.run_stream(stream(FINISH), NO_MEMORY)
