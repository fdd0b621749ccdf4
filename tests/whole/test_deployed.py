"""The program's folder without tilefarm: both examples give the reference's bits."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.networks.random_networks import Builder, conv, samples_for, window
from kit.networks.simulated import PAIRS, program_of
from numpy.typing import NDArray
from tilefarm.target import TARGETS, Target, load_target

from device_server.vta.library.native import find_library
from driver.network import import_model, load_data
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Add, Graph, GraphInput, Normalize, Product, Reduce, Softmax
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.float_network import float_network
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold
from driver.program.model import NetworkProgram
from driver.program.running import in_types_of_model, write_answers
from driver.program.simulated import answers_of
from driver.tune.output import OutputFolder

SIM: Final = TARGETS["sim"]
Arrays = dict[str, NDArray[Any]]


pytestmark = [
    needs_simulator,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


def demo() -> tuple[Graph, Arrays]:
    graph = import_model(DEMO_MODEL)
    return graph, dict(load_data(DEMO_CALIBRATION, graph).first(6).inputs)


def two_outputs() -> tuple[Graph, Arrays]:
    rng = np.random.default_rng(0)
    builder = Builder((2, 3, 6, 6))
    first = builder.put(conv(rng, 3, 16, window(3, pad=1)), "x")
    graph = fold(builder.graph(first, builder.put(conv(rng, 16, 5, window(1)), first)))
    return graph, samples_for(graph, 0)


def parts_in_float() -> tuple[Graph, Arrays]:
    """Layers of the accelerator between float ones of the processor, one of which has weights."""
    rng = np.random.default_rng(1)
    builder = Builder((1, 3, 6, 6))
    first = builder.put(conv(rng, 3, 16, window(3, pad=1)), "x")
    normal = builder.put(Normalize(axes=(1,), epsilon=1e-5), first)
    second = builder.put(conv(rng, 16, 16, window(3, pad=1)), normal)
    shares = builder.put(Softmax(axis=3), builder.put(Product(), second, first))
    means = builder.put(Reduce(kind="mean", axes=(2,)), shares)
    graph = fold(builder.graph(builder.put(conv(rng, 16, 5, window(1)), shares), means))
    return graph, samples_for(graph, 0)


@pytest.mark.parametrize(
    ("case", "target", "how"),
    [
        (demo, SIM, Quantization()),
        (two_outputs, PAIRS, Quantization()),
        (parts_in_float, SIM, Quantization(keep_float=("n2",))),
        (parts_in_float, PAIRS, Quantization()),
    ],
    ids=["demo", "two-outputs-in-pairs", "parts-in-float", "parts-in-float-in-pairs"],
)
def test_both_examples_give_the_references_bits(
    case: Any, target: Target, how: Quantization, tmp_path: Path
) -> None:
    graph, data = case()
    quantized = quantize(graph, data, how, block=target.lanes.block)
    program = program_of(partition_network(quantized, target))
    wanted = run_integer(quantized, data)
    out = OutputFolder(tmp_path)
    out.write_program(program, {})
    library = str(find_library())
    assert in_python(out.program, library, data) == as_bytes(program, wanted)
    assert in_c(out.program, library, program, data) == as_bytes(program, wanted)


@pytest.mark.parametrize("floats", [False, True], ids=["int8", "float"])
@pytest.mark.parametrize("case", [demo, two_outputs, parts_in_float])
def test_a_processor_alone_gives_the_references_bits_without_a_library(
    case: Any, floats: bool, tmp_path: Path
) -> None:
    graph, data = case()
    target = load_target("cpu")
    if floats:
        quantized = float_network(graph, target)
    else:
        quantized = quantize(graph, data, block=target.lanes.block)
    program = program_of(partition_network(quantized, target))
    wanted = as_bytes(program, run_integer(quantized, data))
    out = OutputFolder(tmp_path)
    out.write_program(program, {})
    assert b"VTA" not in program.code
    assert in_python(out.program, None, data) == wanted
    assert in_c(out.program, None, program, data) == wanted
    assert answered(program, data) == wanted
    header = (out.program / "network.h").read_text()
    assert f"int32_t {program.entry}(" in header
    check = ["cc", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "network.h"]
    subprocess.run(check, cwd=out.program, check=True)


@pytest.mark.parametrize("batch", [1, 4])
def test_threads_give_the_same_bits(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_worker.schedule.cpu_threads.GRAIN", 1)  # small ones are shared too
    rng = np.random.default_rng(1)
    builder = Builder((batch, 3, 6, 6))
    first = builder.put(conv(rng, 3, 32, window(3, pad=1)), "x")
    shares = builder.put(Softmax(axis=3), builder.put(Product(), first, first))
    graph = fold(builder.graph(builder.put(conv(rng, 32, 5, window(1)), shares)))
    data = {
        name: np.concatenate([values] * batch) for name, values in samples_for(graph, 0).items()
    }
    target = load_target("cpu@2")
    quantized = quantize(graph, data, block=target.lanes.block)
    program = program_of(partition_network(quantized, target))
    assert b"tilefarm_open_pool" in program.code
    out = OutputFolder(tmp_path)
    out.write_program(program, {})
    wanted = as_bytes(program, run_integer(quantized, data))
    for threads in ("1", "2"):
        assert in_python(out.program, None, data, "--threads", threads) == wanted
        assert in_c(out.program, None, program, data, "--threads", threads) == wanted
    assert in_c(out.program, None, program, data) == wanted
    assert answered(program, data) == wanted


def test_more_threads_than_cores_are_refused(alone: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    for words in (refused_by_python(alone), refused_by_c(alone)):
        said = words("--threads", str(cores + 1))
        assert said == [
            f"{cores + 1} threads, but there are {cores} cores",
            f"  try: --threads {cores}",
        ]


def test_what_is_no_option_gets_the_usage(alone: Path) -> None:
    assert refused_by_python(alone)("--help")[0].startswith("Runs this program on samples: ")
    assert refused_by_c(alone)("--help")[0].startswith("usage: run ")


def test_a_program_for_another_processor_names_the_missing_instruction(alone: Path) -> None:
    manifest, source = alone / "manifest.json", alone / "run.c"
    manifest.write_text(manifest.read_text().replace('"needed": [', '"needed": ["avx99", ', 1))
    source.write_text(source.read_text().replace('needed[] = "', 'needed[] = "avx99 '))
    for words in (refused_by_python(alone), refused_by_c(alone)):
        assert words() == [
            "network.so needs a processor with avx99",
            "  try: tune for --target cpu here",
        ]


def test_a_program_for_another_architecture_is_refused(alone: Path) -> None:
    manifest, source = alone / "manifest.json", alone / "run.c"
    manifest.write_text(manifest.read_text().replace('"processor": "', '"processor": "other '))
    assert "needs a processor with other " in refused_by_python(alone)()[0]
    source.write_text(source.read_text().replace("#if !defined(__", "#if !defined(__other_"))
    done = subprocess.run(["cc", "run.c"], cwd=alone, capture_output=True, text=True, check=False)
    assert "tune the network for this machine's processor" in done.stderr


def test_an_object_that_cannot_be_mapped_here_is_refused(alone: Path) -> None:
    """As one for larger pages: a segment does not begin where a page of the file does."""
    code = alone / "network.so"
    content = bytearray(code.read_bytes())
    (table,) = struct.unpack_from("<Q", content, 32)
    (offset,) = struct.unpack_from("<Q", content, table + 56 + 8)  # of the second segment
    struct.pack_into("<Q", content, table + 56 + 8, offset + 8)
    code.write_bytes(content)
    manifest = json.loads((alone / "manifest.json").read_text())
    manifest["code"]["sha256"] = hashlib.sha256(content).hexdigest()
    (alone / "manifest.json").write_text(json.dumps(manifest))
    source, read = alone / "run.c", 'need_file("./network.so", '
    sums = f"{read}{len(content)}, {zlib.adler32(content)}u); //"
    source.write_text(source.read_text().replace(f"free({read}", f"{sums}"))
    said = refused_by_python(alone)()
    assert said[0].startswith("cannot be loaded here: ")
    assert said[1:] == ["  try: tune for --target cpu here"]
    assert refused_by_c(alone)()[0].startswith("./network.so: ./network.so: ELF ")


def test_what_is_read_is_never_lost_under_what_is_written(alone: Path) -> None:
    sample = np.zeros((1, 1, 8, 8), np.float32).tobytes()
    for name in ("x.npz", "x.bin"):
        (alone / name).write_bytes((alone / name).read_bytes() if name == "x.npz" else sample)
        (alone / f"link to {name}").symlink_to(name)
    before = (alone / "x.npz").read_bytes()
    compile_example(alone)
    for words in (["./run", "x.bin"], [sys.executable, "run.py", "x.npz"]):
        for out in (words[-1], f"link to {words[-1]}"):
            done = subprocess.run(
                [*words, out], cwd=alone, capture_output=True, text=True, check=False
            )
            assert done.returncode in (1, 2)
            assert done.stderr.startswith(f"{out}: is {words[-1]}, which would be lost\n  try: ")
    assert (alone / "x.bin").read_bytes() == sample
    assert (alone / "x.npz").read_bytes() == before
    subprocess.run(["./run", "x.bin", "/dev/null"], cwd=alone, check=True)


def test_the_c_example_says_where_it_is_to_be_run_and_that_there_are_no_samples(
    alone: Path, tmp_path: Path
) -> None:
    compile_example(alone)
    (alone / "x.bin").touch()
    for folder, why in (
        (alone, "x.bin has no samples\n"),
        (tmp_path, "./network.so: No such file or directory\n  try: run it in the folder"),
    ):
        words = [str(alone / "run"), "x.bin", "out"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(why)


@pytest.mark.parametrize("name", ["network.so", "weights.bin"])
@pytest.mark.parametrize("how", ["longer", "other", "absent"])
def test_files_of_another_program_are_refused(name: str, how: str, alone: Path) -> None:
    part = alone / name
    content = part.read_bytes()
    part.write_bytes(content + b"x" if how == "longer" else content[:-1] + b"x")
    if how == "absent":
        part.unlink()
    said_by_c, said = refused_by_c(alone)(), refused_by_python(alone)()
    assert len(said_by_c) == (2 if how == "absent" else 1)
    assert name in said[0]
    assert (
        said_by_c[0]
        .removeprefix("./")
        .startswith(f"{name}: No such file" if how == "absent" else f"{name}: damaged")
    )


def test_the_examples_fail_where_outputs_cannot_be_written(alone: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no disk that is always full")
    compile_example(alone)
    next(iter(demo()[1].values())).astype(np.float32).tofile(alone / "in")
    said = {"/dev/full": "No space left on device", "no/y": "No such file or directory"}
    for out, why in said.items():
        for words in (["./run", "in", out], [sys.executable, "run.py", "x.npz", out]):
            done = subprocess.run(words, cwd=alone, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            assert done.stderr.startswith(f"{out}: ")
            assert done.stderr.endswith(f"{why}\n")


HOSTILE: Final = "x*/ int evil; /*/\n@POOL@"
"""A name that would end a comment, and begin a line."""


@pytest.fixture
def with_odd_names(tmp_path: Path) -> Path:
    """A sum of two inputs with an odd name, as an output that numpy.savez would not take."""
    shape = (1, 16, 2, 2)
    builder = Builder(shape, HOSTILE)
    builder.shapes |= {"b": shape, HOSTILE: shape}
    builder.inputs = [
        GraphInput(name=name, shape=shape, axes=(0, 1, 2, 3)) for name in (HOSTILE, "b")
    ]
    graph = builder.graph(builder.put(Add(), HOSTILE, "b"))
    graph = replace(graph, outputs=(replace(graph.outputs[0], name="file"),))
    target = load_target("cpu")
    program = program_of(partition_network(float_network(graph, target), target))
    out = OutputFolder(tmp_path)
    out.write_program(program, {})
    return out.program


def test_names_end_no_comment_and_begin_no_line(with_odd_names: Path) -> None:
    header = (with_odd_names / "network.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    assert "evil" in header
    assert "evil" not in code
    assert (
        r"x*/ int evil; /*/\n@POOL@  [1, 16, 2, 2]" in (with_odd_names / "README.txt").read_text()
    )
    for language in ("c", "c++"):
        check = ["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language, "network.h"]
        subprocess.run(check, cwd=with_odd_names, check=True)


def test_an_output_may_have_any_name(with_odd_names: Path, tmp_path: Path) -> None:
    ones = np.ones((1, 16, 2, 2), np.float32)
    in_python(with_odd_names, None, {HOSTILE: ones, "b": ones})
    write_answers(tmp_path / "answers.npz", {"file": ones + ones})
    for path in (with_odd_names / "y.npz", tmp_path / "answers.npz"):
        with np.load(path) as found:
            assert found["file"].tobytes() == (ones + ones).tobytes()


def test_the_c_example_refuses_a_folder_and_inputs_of_unlike_lengths(with_odd_names: Path) -> None:
    compile_example(with_odd_names)
    for name, samples in (("one", 1), ("two", 2)):
        (with_odd_names / name).write_bytes(bytes(256 * samples))
    said = {
        ("one", "two"): "one ends before the other inputs\n",
        ("two", "one"): "one ends within a run\n",
        (".", "one"): ".: Is a directory\n",
        ("one", "."): ".: Is a directory\n",
    }
    for inputs, why in said.items():
        words = ["./run", *inputs, "out"]
        done = subprocess.run(
            words, cwd=with_odd_names, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (1, why)


@pytest.fixture(scope="module")
def for_a_processor() -> NetworkProgram:
    """A program for the processor here, with one input and one output."""
    graph, data = demo()
    return program_of(partition_network(quantize(graph, data), load_target("cpu")))


@pytest.fixture
def alone(for_a_processor: NetworkProgram, tmp_path: Path) -> Path:
    """Its files, and an input."""
    out = OutputFolder(tmp_path)
    out.write_program(for_a_processor, {})
    np.savez(out.program / "x.npz", x=next(iter(demo()[1].values())))
    return out.program


def refused_by_python(folder: Path) -> Callable[..., list[str]]:
    """What run.py says, in lines; it fails."""

    def run(*options: str) -> list[str]:
        words = [sys.executable, "run.py", *options, "x.npz"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        return done.stderr.splitlines()

    return run


def refused_by_c(folder: Path) -> Callable[..., list[str]]:
    """What run.c says, in lines; it fails."""

    def run(*options: str) -> list[str]:
        compile_example(folder)
        words = ["./run", *options, "x.npz", "out"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2), done.stderr
        return done.stderr.splitlines()

    return run


def compile_example(folder: Path) -> None:
    flags = ["-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run(
        ["cc", *flags, "run.c", "-ldl", "-lpthread", "-o", "run"], cwd=folder, check=True
    )


def answered(program: NetworkProgram, data: Arrays) -> list[bytes]:
    """The outputs of a run in the sandbox."""
    return [answers_of(program, data).outputs[o.name].tobytes() for o in program.outputs]


def as_bytes(program: NetworkProgram, arrays: Any) -> list[bytes]:
    return [np.asarray(arrays[o.name], np.float32).tobytes() for o in program.outputs]


def in_python(folder: Path, library: str | None, data: Arrays, *options: str) -> list[bytes]:
    """The outputs in the order in which the example writes them: the program's."""
    arrays: dict[str, Any] = dict(data)
    np.savez(folder / "x.npz", **arrays)
    words = ["run.py", *options, *([library] if library else []), "x.npz", "y.npz"]
    subprocess.run([sys.executable, *words], cwd=folder, check=True)
    with np.load(folder / "y.npz") as found:
        return [found[name].tobytes() for name in found.files]


def in_c(
    folder: Path, library: str | None, program: NetworkProgram, data: Arrays, *options: str
) -> list[bytes]:
    compile_example(folder)
    inputs = [f"in{index}" for index in range(len(program.inputs))]
    outputs = [f"out{index}" for index in range(len(program.outputs))]
    for name, parameter in zip(inputs, program.inputs, strict=True):
        data[parameter.name].astype(np.float32).tofile(folder / name)
    subprocess.run(
        ["./run", *options, *([library] if library else []), *inputs, *outputs],
        cwd=folder,
        check=True,
    )
    return [(folder / name).read_bytes() for name in outputs]


def test_the_python_example_takes_a_part_of_a_batch_and_the_models_integers(
    tmp_path: Path,
) -> None:
    graph, data = two_outputs()
    taken, made = Grid(0.02, 120, "uint8"), Grid(0.1, -3, "int8")
    graph = replace(
        graph,
        inputs=(replace(graph.inputs[0], grid=taken),),
        outputs=(replace(graph.outputs[0], grid=made), *graph.outputs[1:]),
    )
    quantized = quantize(graph, data, block=PAIRS.lanes.block)
    program = program_of(partition_network(quantized, PAIRS))
    out = OutputFolder(tmp_path)
    out.write_program(program, {})
    integers = {name: taken.integers(values[:3]) for name, values in data.items()}
    reals = {name: taken.reals(values) for name, values in integers.items()}
    reals = {name: np.concatenate([values, values[-1:]]) for name, values in reals.items()}
    wanted = {name: values[:3] for name, values in run_integer(quantized, reals).items()}
    in_types = in_types_of_model(program, wanted)
    found = in_python(out.program, str(find_library()), integers)
    assert found == [in_types[output.name].tobytes() for output in graph.outputs]
    assert [in_types[o.name].dtype for o in graph.outputs] == [np.int8, np.float32]


@pytest.fixture(scope="module")
def with_one_input() -> NetworkProgram:
    """A program with one input, `image`."""
    graph, data = demo()
    return program_of(partition_network(quantize(graph, data), SIM))


@pytest.fixture
def folder(with_one_input: NetworkProgram, tmp_path: Path) -> Path:
    """Its files."""
    out = OutputFolder(tmp_path)
    out.write_program(with_one_input, {})
    return out.program


def test_the_python_example_takes_the_only_input_by_its_usual_name(folder: Path) -> None:
    (values,) = demo()[1].values()
    library = str(find_library())
    assert in_python(folder, library, {"x": values}) == in_python(
        folder, library, {"image": values}
    )


DATA: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "no such file": ({}, "x.npz: not what numpy.savez writes: "),
    "another name": (
        {"picture": np.zeros((2, 1, 8, 8))},
        "x.npz: no array 'image'; it has picture",
    ),
    "another shape": ({"x": np.zeros((2, 8))}, "x.npz: x is [2, 8], not ['samples', 1, 8, 8]"),
    "no samples": ({"x": np.zeros((0, 1, 8, 8))}, "x.npz: x has no samples"),
    "no numbers": (
        {"x": np.zeros((2, 1, 8, 8), np.complex64)},
        "x.npz: x has type complex64, not real numbers",
    ),
    "objects": ({"x": np.array([None])}, "x.npz: not what numpy.savez writes: "),
}


@pytest.mark.parametrize("case", DATA)
def test_the_python_example_says_what_is_wrong_with_data(case: str, folder: Path) -> None:
    arrays, why = DATA[case]
    if arrays:
        np.savez(folder / "x.npz", **arrays)
    words = [sys.executable, "run.py", str(find_library()), "x.npz"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith(why)) == (1, True), done.stderr
    assert done.stderr.count("\n") == 1


def test_the_c_example_refuses_a_part_of_a_sample(folder: Path) -> None:
    compile_example(folder)
    (folder / "in").write_bytes(b"12345")
    words = ["./run", str(find_library()), "in", "out"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "in ends within a run\n")


def test_the_examples_say_what_is_wrong(folder: Path) -> None:
    words = [sys.executable, "run.py", "absent.so", "x.npz"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("absent.so: no VTA library: ")
    with (folder / "weights.bin").open("ab") as file:
        file.write(b"x")
    words = [sys.executable, "run.py", "absent.so", "x.npz"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("weights.bin: damaged"), "before anything is loaded"
    (folder / "weights.bin").write_bytes((folder / "weights.bin").read_bytes()[:-1])
    compile_example(folder)
    words = ["./run", "absent.so", "in", "out"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("absent.so: ")
