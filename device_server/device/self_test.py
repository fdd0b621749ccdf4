"""The self-test by itself: is this runtime, this target and this board what they should be?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilefarm.clock import SystemClock
from tilefarm.errors import SelfTestError, SettingsError
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import Target

from device_server.device import elf
from device_server.device.canary import Canary, Proof
from device_server.device.known_kernel import KnownKernel, known_kernel
from device_server.device.temporary import temporary_folder
from device_server.runner.runner import Runner, RunnerLimits
from device_server.vta.library.native import find_known_kernel


def machine_of(target: Target) -> elf.Machine:
    """The machine that a target's kernels are made for.

    Raises:
        SettingsError: none that kernels can be verified for.
    """
    try:
        return elf.Machine.of_triple(target.host.triple)
    except ValueError as error:
        raise SettingsError(str(error), "x86_64, aarch64 or armv7 hosts") from None


def known_kernel_for(target: Target) -> KnownKernel:
    """The known kernel of this installation on a target.

    Raises:
        InfraError: it is not built.
        SelfTestError: it is of another machine than the target's host.
        SettingsError: see `machine_of`.
    """
    path = find_known_kernel(target)
    artifact = path.read_bytes()
    if reason := elf.rejection(artifact, machine_of(target)):
        raise SelfTestError(
            f"the known kernel {path} is none for target {target.name}: {reason}",
            "--target with the host of this machine, or build the runtime library for its host",
        )
    return known_kernel(target, artifact)


def runner_of(
    target: Target,
    *,
    runtime: Path | None,
    environment: Mapping[str, str] | None = None,
    threads: int = 1,
    device: str = "local",
) -> Runner:
    """The runner of a device.

    Args:
        target: what the device implements.
        runtime: the VTA library that kernels run on; None for the simulator.
        environment: variables that the library reads.
        threads: that share the work of kernels that are made for it.
        device: the name to put into records.

    Raises:
        SettingsError: there is no such library.
        InfraError: the runner or its library is not there.
    """
    if runtime is not None and not runtime.is_file():
        raise SettingsError(f"{runtime}: no such VTA library", "name a shared object")
    library = runtime.absolute() if runtime is not None else None
    return Runner(
        target=target,
        library=library,
        limits=RunnerLimits(threads=threads),
        environment=environment,
        device=device,
    )


def require_level(sandbox: str, required: SandboxLevel) -> None:
    """Nothing where a sandbox confines kernels as strongly as is required.

    Raises:
        SettingsError: it does not.
    """
    level = SandboxLevel.of(sandbox)
    if not level.is_at_least(required):
        raise SettingsError(
            f"kernels would be confined less than --require-sandbox {required} wants: the level"
            f" is {level} ({sandbox})",
            f"allow what is missing on this host (profiles of containers forbid it), or where you"
            f" trust everybody who may run kernels: --require-sandbox {level}",
        )


def self_test(
    target: Target,
    *,
    runtime: Path | None,
    environment: Mapping[str, str] | None = None,
    device: str,
) -> Proof:
    """What the known kernel gives here.

    Raises:
        SelfTestError: not what it should.
        InfraError: it cannot be made; see `runner_of` and `known_kernel_for` too.
        SettingsError: see those.
    """
    known = known_kernel_for(target)
    with (
        temporary_folder("tilefarm-self-test-") as folder,
        runner_of(target, runtime=runtime, environment=environment, device=device) as runner,
    ):
        canary = Canary(known, runner, folder, clock=SystemClock(), device=device)
        return canary.prove()
