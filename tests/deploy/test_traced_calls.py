"""What is read of an emulator's trace whose lines were written by several threads at a time."""

from __future__ import annotations

from pathlib import Path

from .traced_calls import Call, TracedChild, children

NUMBERS = {"mmap": 222, "close": 57, "seccomp": 277, "openat": 56, "futex": 98}
TRACE = """\
7 mmap(NULL,4096,PROT_READ|PROT_WRITE,MAP_PRIVATE,-1,0) = 0x1000
8 seccomp(2,0,0x10,0,0,0) = -1 errno=38 (Function not implemented)
8 openat(AT_FDCWD,"/proc/self/fd/4",O_RDONLY|O_CLOEXEC) = 5
8 mmap(8 close(4) = 0
 = 9
8 Unknown syscall 403(0,1,2,3,4,5) = 0
8 Unknown syscall 277(2,0,0,0,0,0) = -1
8 mmap(NULL,8 futex(0x10,FUTEX_WAKE,1) = 1
4096,PROT_READ,MAP_PRIVATE,-1,0) = 0x2000
8 mmap(NULL,4096,PROT_READ|PROT_EXEC,MAP_PRIVATE,-1,0) = 0x3000
9 seccomp(2,0,0x10,0,0,0) = -1 errno=38 (Function not implemented)
9 close(3) = 0
"""


def test_a_line_with_another_in_its_middle_is_no_call_with_odd_arguments(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(TRACE)
    (child,) = children(tmp_path / "trace", NUMBERS)
    assert child == TracedChild(
        process=8,
        loading=frozenset({Call("openat", 56, 0o2000000), Call("number 403", 403)}),
        computing=frozenset({Call("mmap", 222, 5)}),
    )
