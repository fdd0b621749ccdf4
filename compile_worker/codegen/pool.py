"""Threads that share the parallel kernels of a program: what its object has of a pool.

    caller                             helper, a thread of the same process
    tilefarm_open_pool(threads)        tilefarm_help()
      entry(buffers, offsets)            takes a part, computes it, looks for the next one,
        kernel: parts of a round         until there is none and the pool is closed
    tilefarm_close_pool()

An object may ask for nothing, so it makes no threads: whoever runs it has them call
`tilefarm_help`, and lets them sleep while the pool is closed. Parts are taken, not dealt out: a
helper that comes late, or is kept from its core, is not waited for unless it has begun a part.

Any thread may call the entry, open and close at any time. There is one round at a time, of whoever
made `is_busy` 1; a kernel that finds it so does all its parts by itself, and opening waits for it.

A round is one call of one kernel. `word` is its number << 32 | the next part; a helper has read
the right `part` and `state` if nobody has changed `word` since: these two change between rounds
alone, when all parts are taken and done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tilefarm.target import Host

from compile_worker.codegen.parallel import SHARE, parallel_loop
from compile_worker.ir.func import Func

OPEN: Final = "tilefarm_open_pool"
HELP: Final = "tilefarm_help"
CLOSE: Final = "tilefarm_close_pool"

_PARTS: Final = 4
"""Parts for each thread: one that is kept from its core leaves the rest of its share to others."""

_WAITS: Final = {
    "x86_64": ("llvm.x86.sse2.pause", ""),
    "aarch64": ("llvm.aarch64.hint", "i32 1"),
    "armv7": ("llvm.arm.hint", "i32 1"),
}
"""What a loop that waits says to the processor, by what triples begin with: PAUSE and YIELD."""


def pool_text(funcs: Iterable[Func], host: Host) -> str:
    """The pool of an object, if any of its kernels is parallel; beside `sharing_text`."""
    if not any(parallel_loop(func) for func in funcs):
        return ""
    name, argument = _WAITS[host.triple.partition("-")[0]]
    declared = f"declare void @{name}({argument.partition(' ')[0]})\n"
    text = _TEXT.replace("WAIT", f"call void @{name}({argument})").replace("PARTS", str(_PARTS))
    for word, value in (("OPEN", OPEN), ("HELP", HELP), ("CLOSE", CLOSE), ("SHARE", SHARE)):
        text = text.replace(word, value)
    return declared + text


_TEXT: Final = """\
@pool.word = internal global i64 0, align 8
@pool.done = internal global i64 0, align 8
@pool.parts = internal global i64 0, align 8
@pool.is_open = internal global i64 0, align 8
@pool.is_busy = internal global i64 0, align 8
@pool.part = internal global ptr null, align 8
@pool.state = internal global ptr null, align 8

define internal i1 @pool.work() nounwind {
  br label %look
look:
  %word = load atomic i64, ptr @pool.word acquire, align 8
  %number = and i64 %word, 4294967295
  %parts = load atomic i64, ptr @pool.parts acquire, align 8
  %is_left = icmp ult i64 %number, %parts
  br i1 %is_left, label %take, label %none
take:
  %part = load atomic ptr, ptr @pool.part monotonic, align 8
  %state = load atomic ptr, ptr @pool.state monotonic, align 8
  %next = add i64 %word, 1
  %pair = cmpxchg ptr @pool.word, i64 %word, i64 %next acq_rel acquire
  %is_mine = extractvalue { i64, i1 } %pair, 1
  br i1 %is_mine, label %compute, label %look
compute:
  call void %part(ptr %state, i64 %number, i64 %parts)
  %before = atomicrmw add ptr @pool.done, i64 1 release
  ret i1 true
none:
  ret i1 false
}

define internal i1 @pool.begin() nounwind {
  %pair = cmpxchg ptr @pool.is_busy, i64 0, i64 1 acquire monotonic
  %is_mine = extractvalue { i64, i1 } %pair, 1
  ret i1 %is_mine
}

define internal void @pool.share(ptr %part, ptr %state) nounwind {
entry:
  %is_mine = call i1 @pool.begin()
  br i1 %is_mine, label %begin, label %alone
alone:
  call void %part(ptr %state, i64 0, i64 1)
  ret void
begin:
  %parts = load atomic i64, ptr @pool.parts monotonic, align 8
  store atomic ptr %part, ptr @pool.part monotonic, align 8
  store atomic ptr %state, ptr @pool.state monotonic, align 8
  store atomic i64 0, ptr @pool.done monotonic, align 8
  %word = load atomic i64, ptr @pool.word monotonic, align 8
  %round = lshr i64 %word, 32
  %next = add i64 %round, 1
  %begun = shl i64 %next, 32
  store atomic i64 %begun, ptr @pool.word release, align 8
  br label %work
work:
  %is_done = call i1 @pool.work()
  br i1 %is_done, label %work, label %look
wait:
  WAIT
  br label %look
look:
  %done = load atomic i64, ptr @pool.done acquire, align 8
  %is_over = icmp eq i64 %done, %parts
  br i1 %is_over, label %end, label %wait
end:
  store atomic i64 0, ptr @pool.is_busy release, align 8
  ret void
}

define void @OPEN(i64 %threads) nounwind {
entry:
  br label %look
wait:
  WAIT
  br label %look
look:
  %is_mine = call i1 @pool.begin()
  br i1 %is_mine, label %open, label %wait
open:
  %word = load atomic i64, ptr @pool.word monotonic, align 8
  %taken = or i64 %word, 4294967295
  store atomic i64 %taken, ptr @pool.word monotonic, align 8
  %parts = mul i64 %threads, PARTS
  store atomic i64 %parts, ptr @pool.parts release, align 8
  store atomic ptr @pool.share, ptr @SHARE release, align 8
  store atomic i64 1, ptr @pool.is_open release, align 8
  store atomic i64 0, ptr @pool.is_busy release, align 8
  ret void
}

define void @HELP() nounwind {
entry:
  br label %work
work:
  %is_done = call i1 @pool.work()
  br i1 %is_done, label %work, label %look
look:
  %open = load atomic i64, ptr @pool.is_open acquire, align 8
  %is_closed = icmp eq i64 %open, 0
  br i1 %is_closed, label %end, label %wait
wait:
  WAIT
  br label %work
end:
  ret void
}

define void @CLOSE() nounwind {
  store atomic ptr null, ptr @SHARE monotonic, align 8
  store atomic i64 0, ptr @pool.is_open release, align 8
  ret void
}
"""
