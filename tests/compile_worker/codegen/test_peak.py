"""The kernel that multiplies all along: its entry, and what it does on this processor."""

from __future__ import annotations

from pathlib import Path

from kit.built import require
from tilefarm.errors import TargetError
from tilefarm.processors import AARCH64, PROCESSORS, this_processor
from tilefarm.target import Host

from compile_worker.codegen.link import find_linker
from compile_worker.codegen.peak import peak_object
from driver.benchmarks.processor.peak import peak_call


def test_it_runs_here(tmp_path: Path) -> None:
    made = peak_call(this_processor().host, tmp_path / "peak.so")
    if made is None:
        assert peak_object(this_processor().host) is None
        return
    call, products = made
    call()
    assert products > 1_000_000


def test_processors_have_the_products_of_their_instructions() -> None:
    hosts = {each.name: each.host for each in PROCESSORS}
    wide, narrow = (peak_object(hosts[f"cpu:x86-64-{level}"]) for level in ("v4", "v3"))
    assert wide is not None
    assert narrow is not None
    assert wide.products > narrow.products
    assert (narrow.operands_nbytes, narrow.sums_nbytes) == (64, 32)


WITHOUT_MATRICES, WITH_MATRICES = (
    Host(triple=AARCH64, cpu="neoverse-n2", features=features) for features in ("-i8mm", "")
)


def no_linker() -> str:
    """Why an object for another processor cannot be linked here; empty where it can."""
    try:
        find_linker(WITH_MATRICES)
    except TargetError as error:
        return error.what
    return ""


def test_products_of_matrices_are_the_peak_where_there_are_some() -> None:
    require(no_linker)
    dots, matrices = peak_object(WITHOUT_MATRICES), peak_object(WITH_MATRICES)
    assert dots is not None
    assert matrices is not None
    assert matrices.products == 2 * dots.products


def test_a_processor_without_such_an_instruction_has_none() -> None:
    assert peak_object(Host(triple="armv7-unknown-linux-gnueabihf", cpu="generic")) is None
