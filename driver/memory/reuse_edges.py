"""Who waits for whom because they use the same bytes, one after the other.

A writer of bytes waits for those that read them before, or for who wrote them if nobody did; a
reader waits for the writers. (npu_compiler's `control_edge_generator.hpp`, without its views that
are strided.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Somebody, by number, writes or reads bytes [begin, end)."""

    user: int
    begin: int
    end: int
    writes: bool = False


@dataclass(slots=True)
class _Block:
    """Bytes that have one history.

    Attributes:
        writers: who wrote them last.
        readers: who else has to end before they are written again.
        waited: for whom the writers waited.
    """

    begin: int
    end: int
    writers: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)


def reuse_edges(
    accesses: Iterable[Access], are_parallel: Callable[[int, int], bool] | None = None
) -> list[tuple[int, int]]:
    """(earlier, later) for accesses in the order of a schedule, each once.

    Args:
        accesses: of one memory.
        are_parallel: whether two users run at once, so that neither waits for the other, as those
            that write parts of one buffer. The later one waits for those before both. None: never.
    """
    blocks: list[_Block] = []
    edges: dict[tuple[int, int], None] = {}
    for access in accesses:
        if access.begin == access.end:
            continue
        user = access.user
        _cut_at(blocks, access.begin)
        _cut_at(blocks, access.end)
        blocks += _uncovered(blocks, access)
        mine = [b for b in blocks if access.begin <= b.begin and b.end <= access.end]
        new = _Block(access.begin, access.end, [user])
        for block in mine:
            before = (block.readers or block.writers) if access.writes else block.writers
            others = [each for each in before if each != user]
            parallel = [each for each in others if are_parallel and are_parallel(each, user)]
            waits = [each for each in others if each not in parallel]
            if parallel:
                waits += block.waited
            edges.update(((each, user), None) for each in waits)
            if access.writes:
                kept = new.readers if block.readers else new.writers
                kept += [each for each in parallel if each not in kept]
                new.waited += waits
            else:
                block.readers += [*parallel, user]
        if access.writes:
            gone = {id(block) for block in mine}
            blocks = [*(block for block in blocks if id(block) not in gone), new]
    return list(edges)


def _uncovered(blocks: list[_Block], access: Access) -> list[_Block]:
    """Blocks without a history for those bytes of an access that nobody has used yet."""
    at, found = access.begin, []
    for block in sorted(blocks, key=lambda b: b.begin):
        if access.begin <= block.begin and block.end <= access.end:
            if at < block.begin:
                found.append(_Block(at, block.begin))
            at = block.end
    return [*found, _Block(at, access.end)] if at < access.end else found


def _cut_at(blocks: list[_Block], at: int) -> None:
    """No block reaches across an address any more."""
    for block in blocks:
        if block.begin < at < block.end:
            writers, readers, waited = [*block.writers], [*block.readers], [*block.waited]
            blocks.append(_Block(at, block.end, writers, readers, waited))
            block.end = at
            return
