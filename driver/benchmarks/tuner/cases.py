"""What proposers are compared on: workloads in groups, and networks, with the best known of each.

The best known are the fewest cycles on the target `sim` of all searches so far; a run that finds
better compares with that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.target import Target
from tilefarm.workload import Workload

from driver.benchmarks.tvm_flow import OLD_FLOW
from driver.benchmarks.workloads import workloads
from driver.network import DEMO_CALIBRATION, DEMO_MODEL, NetworkSource, forms_of
from driver.program.vta.layers import MOBILENET_DEPTHWISE, PLAIN, RESNET18


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseGroup:
    """Workloads that are judged together.

    Attributes:
        within: how near to the best known a trial has to be: 0.01 is one percent.
        median_goal, p90_goal: trials that a layer needs at most.
    """

    name: str
    cases: tuple[str, ...]
    within: float
    median_goal: int
    p90_goal: int


_DEMO: Final = tuple(f"demo {at}" for at in range(1, 9))

GROUPS: Final = (
    CaseGroup(name="ResNet-18", cases=tuple(OLD_FLOW), within=0.01, median_goal=2, p90_goal=8),
    CaseGroup(
        name="depthwise",
        cases=tuple(MOBILENET_DEPTHWISE),
        within=0.01,
        median_goal=2,
        p90_goal=8,
    ),
    CaseGroup(
        name="matrix products",
        cases=("matmul", "dense classifier"),
        within=0.01,
        median_goal=2,
        p90_goal=8,
    ),
    CaseGroup(
        name="small kernels and windows",
        cases=(*_DEMO, "max pool", "mean of all", "mean of 2x2", "addition 28", "addition 7"),
        within=0.05,
        median_goal=8,
        p90_goal=8,
    ),
)
QUICK: Final = ("C4", "C10", "D4", "D9", "matmul", "demo 2", "demo 5", "max pool")
"""Of the cases, those of a short run."""

BEST_KNOWN: Final[Mapping[str, int]] = {
    "C2": 505_826,
    "C3": 254_418,
    "C4": 52_726,
    "C5": 480_376,
    "C6": 240_846,
    "C7": 39_722,
    "C8": 466_875,
    "C9": 235_298,
    "C10": 33_333,
    "C11": 461_839,
    "D1": 331_291,
    "D2": 169_037,
    "D3": 331_366,
    "D4": 86_089,
    "D5": 166_870,
    "D6": 44_140,
    "D7": 84_485,
    "D8": 24_842,
    "D9": 44_439,
    "matmul": 5_740,
    "dense classifier": 67_778,
    "max pool": 74_597,
    "mean of all": 3_786,
    "mean of 2x2": 8_062,
    "addition 28": 41_556,
    "addition 7": 11_527,
    "demo 1": 1_027,
    "demo 2": 2_575,
    "demo 3": 3_716,
    "demo 4": 1_579,
    "demo 5": 1_266,
    "demo 6": 3_254,
    "demo 7": 415,
    "demo 8": 479,
}

NETWORKS: Final[Mapping[str, int]] = {
    "zoo:resnet18": 8_710_896,
    "zoo:mobilenet_v1": 5_109_168,
    "zoo:squeezenet": 2_817_244,
}
"""By name: the sum of the best known cycles of its workloads, as often as each runs."""


def case_workloads(target: Target) -> dict[str, Workload]:
    """The workloads of all groups, by name."""
    found = {name: RESNET18[name].workload(target, PLAIN) for name in OLD_FLOW}
    found |= {n: layer.workload(target, PLAIN) for n, layer in MOBILENET_DEPTHWISE.items()}
    named = {name for group in GROUPS for name in group.cases}
    found |= {n: w for n, w in workloads(target).items() if n in named and n not in found}
    demo = network_workloads(str(DEMO_MODEL), target, DEMO_CALIBRATION)
    return found | dict(zip(_DEMO, demo, strict=True))


def network_workloads(
    model: str, target: Target, calibration: Path | None = None
) -> dict[Workload, int]:
    """The accelerator's workloads of a network, and how often each runs."""
    source = NetworkSource(model=model, calibration=calibration)
    return dict(forms_of(source, target).network.workloads())
