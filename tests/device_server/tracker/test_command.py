"""What `tilefarm tracker` says of limits that cannot be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver.cli import main


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--leases-per-user", "0"], "--leases-per-user 0: must be from 1", "no limit"),
        (["--calls-per-user", "nan"], "--calls-per-user nan: must be from 1", "no limit"),
        (["--calls-per-user", "inf"], "--calls-per-user inf: must be from 1 to 1e+06", "no limit"),
        (["--calls-per-user", "5"], "a farm with one secret knows none", "--tokens"),
    ],
)
def test_impossible_limits(
    words: list[str],
    message: str,
    hint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tracker", "--token-file", str(tmp_path / "token"), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert hint in said
