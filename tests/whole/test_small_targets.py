"""Any small network on any small accelerator: the reference's bits, wherever its layers run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, networks, samples_for, window
from kit.networks.simulated import Simulators
from kit.networks.wide import all_wide
from tilefarm.target import Limits, Target, VtaConfig, impossibilities

from driver.network.graph.ir import Graph
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Activations
from driver.network.rewrites.fold import fold

_ELEMENTS: Final = st.integers(0, 7)


@st.composite
def targets(draw: st.DrawFn) -> Target:
    """Vectors of up to four rows and of 2 to 32 lanes, memories of one to 128 elements."""
    batch, block = draw(st.integers(0, 2)), draw(st.integers(1, 5))
    target = Target(
        name="small",
        vta=VtaConfig(
            log_batch=batch,
            log_block=block,
            log_inp_buff_size=batch + block + draw(_ELEMENTS),
            log_wgt_buff_size=2 * block + draw(_ELEMENTS),
            log_acc_buff_size=batch + block + 2 + draw(_ELEMENTS),
            log_uop_buff_size=draw(st.integers(2, 9)),
        ),
        limits=Limits(
            acc_distance=draw(st.integers(3, 5)),
            kernel_uops=draw(st.sampled_from([1, 3, 16, 2048])),
            buffers=draw(st.integers(1, 2)),
            alu_mul=draw(st.booleans()),
        ),
    )
    assert impossibilities(target) == []
    return target


def agrees(
    simulators: Simulators,
    target: Target,
    case: tuple[Graph, int],
    activations: Activations = "symmetric",
    *,
    is_wide: bool = False,
) -> None:
    graph, seed = case
    graph = fold(graph)
    data = samples_for(graph, seed)
    how = replace(
        all_wide(graph, weights=is_wide, activations=is_wide),
        activations=activations,
        requantize="mul" if target.limits.alu_mul else "shift",
    )
    simulators.assert_same(quantize_for(target, graph, data, how), target, data)


SCHEMES: Final = st.sampled_from(get_args(Activations))


@pytest.mark.parametrize("log_block", [5, 6])
def test_large_tiles(simulators: Simulators, log_block: int) -> None:
    """Tiles of 1 and of 4 KiB: what lies behind smaller tensors begins at a multiple of them."""
    target = Target(name="wide", vta=VtaConfig(log_batch=2, log_block=log_block))
    b, rng = Builder((1, 3, 4, 4)), np.random.default_rng(0)
    first = b.put(conv(rng, 3, 40, window(3, pad=1)), "x")
    graph = b.graph(b.put(conv(rng, 40, 5, window(3)), first))
    agrees(simulators, target, (graph, 0))


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(target=targets(), case=networks(), activations=SCHEMES, is_wide=st.booleans())
def test_any_network_on_any_target(
    simulators: Simulators,
    target: Target,
    case: tuple[Graph, int],
    activations: Activations,
    is_wide: bool,
) -> None:
    agrees(simulators, target, case, activations, is_wide=is_wide)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(target=targets(), case=networks(), activations=SCHEMES, is_wide=st.booleans())
def test_many_networks_on_many_targets(
    simulators: Simulators,
    target: Target,
    case: tuple[Graph, int],
    activations: Activations,
    is_wide: bool,
) -> None:
    agrees(simulators, target, case, activations, is_wide=is_wide)
