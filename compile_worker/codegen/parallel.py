"""Kernels whose outermost loop is parallel: threads of whoever calls may share its iterations.

    parallel h in 0:112: ...     ->     kernel.part(state, number, parts): every parts-th iteration
                                        kernel(buffers, offsets):        share(kernel.part, state)
                                                                         or kernel.part(state, 0, 1)

An object asks for nothing but a runtime, which has no threads. So it is the other way around:
an object with such kernels also exports

    void tilefarm_share_work(void (*share)(void (*part)(void* state, int64_t number, int64_t parts),
                                           void* state));

A caller with threads gives it a function that calls `part(state, number, parts)` once for every
number from 0 to parts - 1, in any order and at the same time, and returns when all have returned.
Without it, as on the original runtime, all iterations run on the thread that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from compile_worker.codegen.text import FunctionText
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import For, LoopKind

SETTER: Final = "tilefarm_share_work"
"""The function that an object with parallel kernels exports next to its entries."""

SHARE: Final = "share_work"
"""The variable that it sets: what shares, or nothing."""


def parallel_loop(func: Func) -> For | None:
    """The loop of a kernel whose iterations may be shared: it is all that the kernel does."""
    body = func.body
    shared = isinstance(body, For) and body.kind is LoopKind.PARALLEL and body.extent > 1
    return body if shared and isinstance(body, For) else None


def sharing_text(funcs: Iterable[Func]) -> str:
    """What an object needs once if any of its kernels is parallel: the setter and what it sets."""
    if not any(parallel_loop(func) for func in funcs):
        return ""
    return (
        f"@{SHARE} = internal global ptr null\n"
        f"define void @{SETTER}(ptr %share) nounwind {{\n"
        f"  store ptr %share, ptr @{SHARE}\n  ret void\n}}\n"
    )


def part_text(name: str, body: str, pointers: int, attributes: str) -> str:
    """The function that does one part: takes the pointers out of the state, and calls the body."""
    text = FunctionText(name)
    passed = []
    for position in range(pointers):
        slot = text.op(f"getelementptr ptr, ptr %state, i64 {position}")
        passed.append(f"ptr {text.op(f'load ptr, ptr {slot}')}")
    arguments = ", ".join([*passed, "i64 %number", "i64 %parts"])
    text.do(f"call void @{body}({arguments})")
    text.do("ret void")
    head = f"define internal void @{name}(ptr %state, i64 %number, i64 %parts) {attributes}"
    return f"{head} {{\n{text.body()}\n}}\n"


def call_shared(text: FunctionText, part: str, pointers: Iterable[str]) -> None:
    """Call every part: by the caller's threads if it has given a way to, else here."""
    values = list(pointers)
    state = text.in_entry(f"alloca [{len(values)} x ptr]")
    for position, pointer in enumerate(values):
        slot = text.op(f"getelementptr ptr, ptr {state}, i64 {position}")
        text.do(f"store ptr {pointer}, ptr {slot}")
    share = text.op(f"load ptr, ptr @{SHARE}")
    alone, shared, after = text.fresh_label(), text.fresh_label(), text.fresh_label()
    text.branch(text.op(f"icmp eq ptr {share}, null"), alone, shared)
    text.begin(alone)
    text.do(f"call void @{part}(ptr {state}, i64 0, i64 1)")
    text.jump(after)
    text.begin(shared)
    text.do(f"call void {share}(ptr @{part}, ptr {state})")
    text.jump(after)
    text.begin(after)


def one_part(text: FunctionText, loop: For, iteration: Callable[[str], None]) -> None:
    """Iterations %number, %number + %parts, and so on: a division would be a call on 32-bit ARM."""
    some = text.op(f"icmp slt i64 %number, {loop.extent}")
    with text.when(some), text.stride("%number", "%parts", loop.extent) as counter:
        iteration(counter)
