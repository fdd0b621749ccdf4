"""The fence under which a device was wrong, over restarts and on a disk that keeps nothing."""

from __future__ import annotations

from pathlib import Path

from device_server.device.spoiled import SpoiledFence


def test_the_highest_fence_is_known_after_a_restart(tmp_path: Path) -> None:
    events: list[str] = []

    def opened() -> SpoiledFence:
        log = lambda event, **fields: events.append(event)  # noqa: E731
        return SpoiledFence(tmp_path / "spoiled", log, device="sim0")

    spoiled = opened()
    assert spoiled.fence == 0
    for fence in (3, 7, 5):
        spoiled.note(fence)
    assert spoiled.fence == opened().fence == 7
    assert events == []
    (tmp_path / "spoiled").write_text("cut o")
    assert opened().fence == 0
    assert events == ["spoiled_fence_not_kept"]


def test_a_folder_that_keeps_nothing_is_told_of(tmp_path: Path) -> None:
    events: list[str] = []
    spoiled = SpoiledFence(
        tmp_path / "gone" / "spoiled", lambda event, **fields: events.append(event), device="sim0"
    )
    spoiled.note(7)
    assert spoiled.fence == 7
    assert events == ["spoiled_fence_not_kept"]
