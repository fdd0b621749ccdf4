"""What the order of operations needs to know: who waits for whom, and who uses which bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBuffer:
    """Bytes that are live from the first of their users to the last, whatever the order.

    `from_begin` makes them live before the first operation, `to_end` keeps them beyond the last.
    Views of a buffer, parts of it, and what is written over it in place are uses of it.
    """

    nbytes: int
    users: frozenset[int]
    from_begin: bool = False
    to_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGraph:
    """Operations by number, in a given order that is possible, and the buffers that they use.

    Attributes:
        waits_for: of each operation those that must run before it, at least the direct ones.
        buffers: what they use; a buffer has at least one user.

    Raises:
        ValueError: an operation waits for itself or for one that is given after it, or a buffer
            has no user.
    """

    waits_for: tuple[frozenset[int], ...]
    buffers: tuple[LiveBuffer, ...]

    def __post_init__(self) -> None:
        for op, before in enumerate(self.waits_for):
            if any(not 0 <= other < op for other in before):
                raise ValueError(f"operation {op} waits for one that is not given before it")
        if not all(buffer.users for buffer in self.buffers):
            raise ValueError("a buffer that no operation uses has no place in an order")

    def live_nbytes(self, order: Sequence[int]) -> Iterator[int]:
        """The live bytes while each operation of the order runs."""
        position = {op: at for at, op in enumerate(order)}
        change = [0] * (len(order) + 1)
        for buffer in self.buffers:
            at = [position[op] for op in buffer.users]
            change[0 if buffer.from_begin else min(at)] += buffer.nbytes
            change[len(order) if buffer.to_end else max(at) + 1] -= buffer.nbytes
        return islice(accumulate(change), len(order))

    def peak_nbytes(self, order: Sequence[int]) -> int:
        """The most live bytes at any time."""
        return max(self.live_nbytes(order), default=0)
