"""A device does not serve where kernels are confined less than its owner wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.built import needs_c_kernels
from kit.farm.in_process import CREDENTIALS
from tilefarm.errors import SettingsError
from tilefarm.rpc.security import Security
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import TARGETS
from tilefarm.trust.tokens import SharedSecret

from device_server.device.process import serve
from device_server.device.self_test import require_level
from device_server.runner.runner import Runner
from device_server.server import lifetime

WEAK = "rlimits, no_new_privs, no capabilities"
SECCOMP, LANDLOCK = f"{WEAK}, two-stage seccomp", f"{WEAK}, two-stage seccomp, Landlock ABI 7"

pytestmark = needs_c_kernels


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """How often a device would have served on a host with a sandbox."""

    def count(sandbox: str, **options: Any) -> int:
        begun: list[object] = []

        def run(main: object, **_: Any) -> None:
            begun.append(main)

        monkeypatch.setattr(lifetime, "run_until_stopped", run)
        monkeypatch.setattr(Runner, "sandbox", property(lambda _: sandbox))
        serve(
            name="d",
            target=TARGETS["sim"],
            tracker="127.0.0.1:1",
            security=Security(tokens=SharedSecret("secret")),
            credentials=CREDENTIALS,
            folder=tmp_path,
            runtime=None,
            on_ready=lambda _: None,
            **options,
        )
        return len(begun)

    return count


def test_without_seccomp_it_does_not_serve_unless_that_is_wanted(
    served: Callable[..., int],
) -> None:
    with pytest.raises(SettingsError) as refused:
        served(WEAK)
    assert "--require-sandbox seccomp wants: the level is none (rlimits" in refused.value.what
    assert refused.value.hint.endswith("--require-sandbox none")
    assert served(WEAK, require_sandbox=SandboxLevel.NONE) == 1
    assert served(SECCOMP) == 1


@pytest.mark.parametrize("required", SandboxLevel)
def test_a_level_is_enough_for_itself_and_less(required: SandboxLevel) -> None:
    levels = list(SandboxLevel)
    for words in (WEAK, SECCOMP, LANDLOCK):
        enough = levels.index(SandboxLevel.of(words)) >= levels.index(required)
        if enough:
            require_level(words, required)
        else:
            with pytest.raises(SettingsError, match=f"--require-sandbox {required}"):
                require_level(words, required)
