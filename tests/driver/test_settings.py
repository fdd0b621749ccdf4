"""Settings from options, and the secret's file."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from tilefarm.errors import SettingsError

from driver.farm.token import create_token, read_token
from driver.settings import FarmSettings, TuneSettings, add_farm_options, farm_settings


def parsed(*words: str) -> FarmSettings:
    parser = argparse.ArgumentParser()
    add_farm_options(parser)
    return farm_settings(parser.parse_args(words))


def test_options_not_given_keep_their_defaults() -> None:
    assert parsed() == FarmSettings()


def test_options_win() -> None:
    settings = parsed("--devices", "3", "--no-ray", "--device-wait", "1.5", "--target", "sim-de10")
    assert (settings.devices, settings.ray) == (3, False)
    assert (settings.device_wait_seconds, settings.target) == (1.5, "sim-de10")


def test_workers_default_to_the_cores() -> None:
    assert FarmSettings().processes >= 1
    assert FarmSettings(workers=3).processes == 3


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_an_impossible_wait_is_refused(value: float) -> None:
    with pytest.raises(SettingsError, match="--device-wait"):
        FarmSettings(device_wait_seconds=value)


def test_a_search_needs_trials() -> None:
    with pytest.raises(SettingsError, match="--trials 0"):
        TuneSettings(model=Path("m"), calibrate=Path("c"), out=Path("o"), trials=0)


def test_a_token_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = create_token(file)
    assert read_token(file) == token
    assert len(token) >= 32
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    create_token(file)
    file.chmod(0o644)
    with pytest.raises(SettingsError, match="others can read") as refused:
        read_token(file)
    assert refused.value.hint == f"chmod 600 {file}"


def test_an_existing_token_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "token"
    create_token(file)
    with pytest.raises(SettingsError, match="cannot write"):
        create_token(file)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00"])
def test_what_is_no_token_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="token"):
        read_token(file)
