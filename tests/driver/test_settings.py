"""Settings from options, and the secret's file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from tilefarm.errors import SettingsError
from tilefarm.trust.credentials import create_token, read_token

from driver.commands.options.farm import add_farm_options, farm_settings
from driver.farm.settings import FarmSettings
from driver.network.quantize.options import Quantization
from driver.tune.settings import TuneSettings


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


def test_a_processor_times_one_kernel_at_a_time_unless_it_is_asked_for_more() -> None:
    assert parsed("--target", "cpu").devices == 1
    assert parsed("--target", "cpu", "--devices", "2").devices == 2
    farm = ("--tracker", "127.0.0.1:1", "--token-file", "t")
    assert parsed("--target", "cpu", *farm).devices == FarmSettings().devices
    assert parsed("--target", "no such target").devices == FarmSettings().devices


def test_workers_default_to_the_cores() -> None:
    assert FarmSettings().processes >= 1
    assert FarmSettings(workers=3).processes == 3


def test_workers_have_a_limit_and_processes_here_a_lower_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SettingsError, match="--workers 100000: more than 512\n  try: leave it out"):
        FarmSettings(workers=100_000)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    FarmSettings(workers=64).require_room_for_workers()
    with pytest.raises(SettingsError, match="--workers 65: more than 64 processes on 2 cores"):
        FarmSettings(workers=65).require_room_for_workers()


@pytest.mark.parametrize("words", ["--device-wait", "--compile-timeout", "--run-timeout"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e30"])
def test_an_impossible_wait_is_refused(words: str, value: str) -> None:
    """Waits without an end overflow the system's clocks, in the middle of a run."""
    with pytest.raises(SettingsError, match=f"{words} .*: must be from 0.* to 604800 s") as refused:
        parsed(f"{words}={value}")
    assert refused.value.hint == f"{words} 1"


def test_a_device_need_not_be_waited_for() -> None:
    assert parsed("--device-wait", "0").device_wait_seconds == 0


def test_a_search_needs_trials() -> None:
    with pytest.raises(SettingsError, match="--trials -1"):
        TuneSettings(model=Path("m"), calibrate=Path("c"), out=Path("o"), trials=-1)


@pytest.mark.parametrize("percent", [-1.0, 100.0, float("inf"), float("nan")])
def test_a_gain_is_less_than_the_whole(percent: float) -> None:
    with pytest.raises(SettingsError, match="--least-gain"):
        TuneSettings(model=Path("m"), calibrate=Path("c"), out=Path("o"), least_gain=percent)


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


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", "größe".encode(), b"two words", b"a\x00b"]
)
def test_what_is_no_token_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(SettingsError, match="secret"):
        read_token(file)


@pytest.mark.parametrize(
    "words",
    [
        ("--token-file", "t"),
        ("--tls", "d"),
        ("--signing-key", "k"),
        ("--label", "board=de10"),
        ("--priority", "3"),
    ],
)
def test_options_of_a_farm_want_a_tracker(words: tuple[str, str]) -> None:
    with pytest.raises(SettingsError, match=f"{words[0]} is for a farm") as refused:
        parsed(*words)
    assert "--tracker" in refused.value.hint
    settings = parsed("--tracker", "127.0.0.1:1", "--token-file", "t", *words)
    assert settings.tracker == "127.0.0.1:1"


def test_labels_and_priorities_are_read() -> None:
    farm = ("--tracker", "127.0.0.1:1", "--token-file", "t")
    settings = parsed(*farm, "--label", "board=de10", "--label", "site=lab=2", "--priority", "-7")
    assert settings.labels == (("board", "de10"), ("site", "lab=2"))
    assert settings.priority == -7
    with pytest.raises(SettingsError, match="--priority 101: not within"):
        parsed(*farm, "--priority", "101")


def test_options_that_look_at_data_need_some() -> None:
    with pytest.raises(SettingsError, match=r"--correct-bias need --calibrate DATA\.npz"):
        TuneSettings(model=Path("m"), out=Path("o"), quantization=Quantization(correct_bias=True))


def test_nobody_looks_ahead_at_nothing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--lookahead 0: must be at least 1"):
        TuneSettings(model=tmp_path, calibrate=tmp_path, out=tmp_path, lookahead=0)


def test_devices_here_may_load_another_library() -> None:
    assert parsed("--runtime", "stand-in").runtime == Path("stand-in")
    with pytest.raises(SettingsError, match="--runtime is for devices that are started here"):
        FarmSettings(runtime=Path("lib.so"), tracker="127.0.0.1:9190", token_file=Path("t"))


def test_a_level_of_sandbox_is_wanted_as_a_label() -> None:
    farm = ("--tracker", "127.0.0.1:1", "--token-file", "t", "--label", "board=de10")
    assert parsed(*farm).wanted_labels == (("board", "de10"),)
    wanted = parsed(*farm, "--require-sandbox", "landlock")
    assert wanted.wanted_labels == (("board", "de10"), ("sandbox", "landlock"))
    assert parsed("--require-sandbox", "none").wanted_labels == (("sandbox", "none"),)


@pytest.mark.parametrize("name", ["search_seconds", "device_seconds"])
@pytest.mark.parametrize("budget", [0.0, -1.0])
def test_a_budget_of_no_time_is_refused(name: str, budget: float) -> None:
    given: dict[str, Any] = {name: budget}
    with pytest.raises(SettingsError, match=f"--{name.replace('_', '-')}"):
        TuneSettings(model=Path("m"), calibrate=Path("c"), out=Path("o"), **given)
