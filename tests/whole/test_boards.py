"""Programs for boards, held to the rules of their design: the reference's bits and no finding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.built import needs_simulator
from kit.examples import examples
from kit.kernels.nests import dense, with_epilogue
from kit.networks.demo_program import demo_program
from kit.networks.random_networks import Builder, conv, networks, samples_for, window
from kit.networks.simulated import Simulators
from kit.networks.zoo_attempts import passed
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.target import TARGETS, Board, Limits, Target, VtaConfig

from compile_worker.compiler import compile_kernel
from compile_worker.space import generate
from device_server.device import elf
from device_server.vta.library.library import VtaError, VtaLibrary
from driver.network.graph.ir import Clip, Conv2d, Dense, Graph, MatMul
from driver.network.integer.qir import QConv2d, QMatMul
from driver.network.integer.reference import run_workload
from driver.network.integer.samples import sample_inputs
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import AS_USUAL
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold
from driver.program.simulated import on_simulator
from tuner.sampler import Sampler

from . import kinds
from .plausible import accusation

pytestmark = needs_simulator

PYNQ: Final = TARGETS["sim-pynq-z1"]
SIM: Final = TARGETS["sim"]
ORIGINAL: Final = replace(SIM, name="original", board=Board(runtime="original"))


@st.composite
def boards(draw: st.DrawFn) -> Target:
    """Boards of the HLS design with vectors of 4 to 16 lanes, small memories and few micro-ops."""
    block = draw(st.integers(2, 4))
    return Target(
        name="board",
        vta=VtaConfig(
            log_block=block,
            log_inp_buff_size=block + draw(st.integers(3, 9)),
            log_wgt_buff_size=2 * block + draw(st.integers(2, 7)),
            log_acc_buff_size=block + 2 + draw(st.integers(3, 9)),
            log_uop_buff_size=draw(st.integers(6, 13)),
        ),
        limits=Limits(max_shift=15, kernel_uops=8192, buffers=draw(st.integers(1, 2))),
        board=Board(design="hls", runtime=draw(st.sampled_from(["tilefarm", "original"]))),
    )


def with_faint_channels(graph: Graph, log_size: int) -> Graph:
    """The network with every layer's last channels so much smaller: they need wide shifts."""
    nodes = []
    for node in graph.nodes:
        op = node.op
        if isinstance(op, Conv2d | Dense):
            size = np.ones(len(op.weight), np.float32)
            size[len(size) // 4 :] = 2.0**log_size
            by_row = size.reshape(-1, *[1] * (op.weight.ndim - 1))
            op = replace(op, weight=op.weight * by_row, bias=op.bias * size)
        nodes.append(replace(node, op=op))
    return replace(graph, nodes=tuple(nodes))


def no_program_is_rejected(simulators: Simulators, examples: int) -> None:
    """The simulator plays the design's rules: a run with a finding of severity error fails."""

    @given(case=networks(), target=boards(), log_size=st.sampled_from([-9, -11, -13]))
    @settings(max_examples=examples, deadline=None)
    def check(case: tuple[Graph, int], target: Target, log_size: int) -> None:
        graph, seed = case
        graph = fold(with_faint_channels(graph, log_size))
        data = samples_for(graph, seed)
        simulators.assert_same(quantize_for(target, graph, data, AS_USUAL), target, data)

    check()


def test_no_program_for_the_hls_design_is_one_that_it_rejects(simulators: Simulators) -> None:
    no_program_is_rejected(simulators, examples=6)


@pytest.mark.slow
def test_none_of_many_programs_for_the_hls_design_is_rejected(simulators: Simulators) -> None:
    no_program_is_rejected(simulators, examples=40)


def test_channels_that_hardly_matter_are_right_on_the_hls_design(simulators: Simulators) -> None:
    """A shift of 17 would suit the last ones; there it is one to the left by 15."""
    rng = np.random.default_rng(0)
    b = Builder((1, 16, 6, 6))
    layer = replace(conv(rng, 16, 64, window(3, pad=1)), bias=np.zeros(64, np.float32))
    graph = with_faint_channels(b.graph(b.put(layer, "x")), -11)
    data = samples_for(graph, 0)
    wide = quantize_for(SIM, graph, data, AS_USUAL)
    assert max(n.op.shift.max() for n in wide.nodes if isinstance(n.op, QConv2d)) > 15
    simulators.assert_same(quantize_for(PYNQ, graph, data, AS_USUAL), PYNQ, data)


@given(case=kinds.kinds(), seed=st.integers(0, 1 << 16))
@settings(max_examples=examples(12), deadline=None)
def test_no_schedule_of_any_layer_is_one_that_the_hls_design_warns_of(
    tmp_path_factory: pytest.TempPathFactory, case: kinds.Case, seed: int
) -> None:
    """Nor any that takes more micro-ops than the original runtime keeps in one run."""
    if case.work.tensor("factor") is not None:
        return  # its ALU has no MUL
    limits = Limits(max_shift=15, kernel_uops=8192)
    target = replace(case.target, limits=limits, board=PYNQ.board)
    made = generate(case.work, target)
    arrays = sample_inputs(case.work, seed, limits.max_shift)
    (wanted,) = run_workload(case.work, arrays).values()
    library = VtaLibrary()
    for point in Sampler(made.space).sample(2, np.random.default_rng(seed)):
        job = CompileJob(workload=case.work, trace=made.trace(point), target=target, symbol="entry")
        artifact = compile_kernel(job)
        assert isinstance(artifact, Artifact), artifact
        code = tmp_path_factory.mktemp("kernel") / "kernel.so"
        code.write_bytes(artifact.code)
        library.configure(target)
        inputs = [arrays[spec.name].tobytes() for spec in case.work.inputs]
        library.record(True)
        result = library.run_entry(code, "entry", [*inputs, case.work.outputs[0].nbytes])
        streams = library.recorded()
        library.record(False)
        assert result.buffers[-1] == wanted.tobytes()
        assert accusation(case.work, target, artifact, result.counters) == ""
        for stream in streams:
            assert library.run_stream(stream.instructions, stream.before).findings == ()


def products(scale: float) -> Graph:
    """Sums of products of equal rows, which need wide shifts."""
    b = Builder((1, 512, 16))
    high = b.put(Clip(lo=-4.0, hi=4.0), "x")
    return b.graph(b.put(MatMul(groups=1, scale=scale), high, high))


def test_a_product_of_activations_is_shifted_twice_where_once_is_too_far(
    simulators: Simulators,
) -> None:
    graph = products(1.0)
    data = {"x": np.full((6, 512, 16), 4.0, np.float32)}
    quantized = quantize(graph, data)
    (op,) = (node.op for node in quantized.nodes if isinstance(node.op, QMatMul))
    assert op.shift > 15
    for target, first in ((SIM, 0), (PYNQ, 15)):
        network = simulators.assert_same(quantized, target, data)
        (step,) = (s for s in network.steps if s.workload.operator == "matmul")
        assert step.place == "accelerator"
        assert step.workload.first_shift == first


TWINS: Final = [name for name in TARGETS if f"sim-{name}" in TARGETS]


@pytest.mark.parametrize(
    "name", [TWINS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in TWINS[1:])]
)
def test_the_demo_is_compiled_for_a_board_with_its_twin_s_weights(name: str) -> None:
    real, twin = (demo_program(TARGETS[each])[0] for each in (name, f"sim-{name}"))
    assert elf.rejection(real.code, elf.Machine.of_triple(real.target.host.triple)) is None
    assert real.constants == twin.constants


def test_the_original_runtime_loads_micro_ops_for_each_call_site() -> None:
    """The same program gives the same bits and takes some percent more cycles, as it does there."""
    program, batch = demo_program(SIM)
    ours, theirs = (on_simulator(replace(program, target=t), batch) for t in (SIM, ORIGINAL))
    assert ours.outputs == theirs.outputs
    here, there = ours.counters, theirs.counters
    assert here is not None
    assert there is not None
    more = there["instructions"] - here["instructions"]
    assert more > 0
    assert there["uop_load_nbytes"] >= here["uop_load_nbytes"] + 4 * more
    assert here.cycles < there.cycles < 1.2 * here.cycles
    for name in ("gemm_uops", "alu_uops", "inp_load_nbytes", "wgt_load_nbytes", "out_store_nbytes"):
        assert here[name] == there[name]


def test_what_the_limit_keeps_away_is_rejected_below_the_hls_design(tmp_path: Path) -> None:
    """A layer whose shift is 16 does not run there, and one whose shift is 15 does."""
    work = with_epilogue(dense(1, 1), bias=0)
    made = generate(work, PYNQ)
    job = CompileJob(workload=work, trace=made.trace(made.default), target=PYNQ, symbol="entry")
    artifact = compile_kernel(job)
    assert isinstance(artifact, Artifact), artifact
    code = tmp_path / "kernel.so"
    code.write_bytes(artifact.code)
    library = VtaLibrary()
    library.configure(PYNQ)
    for shift in (15, 16):
        arrays = sample_inputs(work, 0) | {"shift": np.array([shift], np.int32)}
        buffers: list[bytes | int] = [
            *(arrays[spec.name].tobytes() for spec in work.inputs),
            work.outputs[0].nbytes,
        ]
        if shift == 15:
            library.run_entry(code, "entry", buffers)
            continue
        with pytest.raises(VtaError, match="a shift by 16 is not within"):
            library.run_entry(code, "entry", buffers)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["vww_f32_float", "vww_int8_qdq"])
def test_a_network_that_has_wide_shifts_passes_its_gate_on_the_hls_design(name: str) -> None:
    """MLPerf Tiny's VWW, all images: bits equal, and the accuracy that it has in float."""
    row = passed(name, PYNQ.name)
    assert row.device == pytest.approx(row.floats, abs=0.01)
