"""The benchmarks of `tilefarm bench`: one file each; its caption says what it measures.

A benchmark is a module with `add_arguments` and `run`, as `driver.commands.Command` has them;
`--json` is there already. To add one: a file here, and a row in `BENCHMARKS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BENCHMARKS: Final[Mapping[str, tuple[str, str]]] = {
    "board": ("driver.bench.board", "searches by a noisy clock, judged by exact cycles"),
    "compare": ("driver.bench.compare", "cycles of one night against another's, with verdicts"),
    "compiler": ("driver.bench.compiler", "time from trace to shared object, by stage"),
    "cpu": ("driver.bench.cpu", "seconds of operators on the processor, by vector unit"),
    "demo": ("driver.bench.demo", "whole runs of the demo, from nothing to the tuned program"),
    "farm": ("driver.bench.farm.command", "what a farm costs, and what gives way first"),
    "kernels": ("driver.bench.kernels", "cycles of ResNet-18's convolutions, against the old flow"),
    "large": ("driver.bench.large", "large networks, from file to program: seconds and memory"),
    "network": ("driver.bench.network", "cycles of a whole network, a row a step, by cause"),
    "promise": (
        "driver.bench.promise.command",
        "promises of accuracy: kept on other samples too, and at which cost",
    ),
    "quantize": (
        "driver.bench.quantize",
        "time from a float network to integers, beside the plainest way",
    ),
    "seed": ("driver.bench.seed", "the same search many times, under load and kills: one result"),
    "simulator": ("driver.bench.simulator", "speed of the simulator on ResNet-18's convolutions"),
    "validity": (
        "driver.bench.validity",
        "what a space allows is right, the rest really fails",
    ),
    "zoo": ("driver.bench.zoo.command", "accuracy of trained networks, from file to device"),
}
"""Name of the benchmark: (module, caption)."""
