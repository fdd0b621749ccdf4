"""The fence under which a device was wrong, over restarts and on a disk that keeps nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_server.device.spoiled import SpoiledFence


@pytest.fixture
def events() -> list[str]:
    return []


def opened(folder: Path, events: list[str]) -> SpoiledFence:
    return SpoiledFence(
        folder / "spoiled.json", lambda event, **fields: events.append(event), device="sim0"
    )


def test_the_newest_lease_is_spoiled_and_that_is_known_after_a_restart(
    tmp_path: Path, events: list[str]
) -> None:
    spoiled = opened(tmp_path, events)
    spoiled.spoil()
    assert spoiled.fence == 0, "nobody has had it"
    spoiled.lease(3)
    assert spoiled.fence == 0
    spoiled.spoil()
    spoiled.lease(7)
    assert spoiled.fence == opened(tmp_path, events).fence == 3
    assert events == []


def test_a_server_that_starts_again_spoils_what_was_leased_before(
    tmp_path: Path, events: list[str]
) -> None:
    opened(tmp_path, events).lease(7)
    again = opened(tmp_path, events)
    again.spoil()
    assert again.fence == opened(tmp_path, events).fence == 7


@pytest.mark.parametrize("content", ["cut o", "[]", "{}", '{"newest": null, "spoiled": 1}'])
def test_a_file_that_says_nothing_is_told_of(
    tmp_path: Path, events: list[str], content: str
) -> None:
    (tmp_path / "spoiled.json").write_text(content)
    assert opened(tmp_path, events).fence == 0
    assert events == ["spoiled_fence_not_kept"]


def test_a_folder_that_keeps_nothing_is_told_of(tmp_path: Path, events: list[str]) -> None:
    spoiled = opened(tmp_path / "gone", events)
    spoiled.lease(7)
    spoiled.spoil()
    assert spoiled.fence == 7
    assert set(events) == {"spoiled_fence_not_kept"}
