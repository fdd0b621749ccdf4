"""What the marks of a problem let a plan choose: operations that run again, results in place.

A mark permits; where the bytes of a problem do not let it come true, nothing is chosen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from driver.memory.dependencies import Part
from driver.memory.problem import FirstContent, Problem


def makers(
    problem: Problem, before: Sequence[tuple[int, ...]], place: Mapping[str, Part]
) -> dict[str, int]:
    """(buffer: operation) that may bring it back by running again, any number of times.

    Its operands hold the same ever after it first ran, as all who write them ran before; it alone
    writes the whole of its one result, and does not read it.
    """
    writers: dict[str, set[int]] = defaultdict(set)
    for at, op in enumerate(problem.ops):
        for name in op.writes:
            writers[place[name].root].add(at)
    filled: set[str] = set()
    whole: dict[str, int] = {}
    for buffer in problem.buffers:
        root = place[buffer.name].root
        whole[root] = max(whole.get(root, 0), place[buffer.name].end)
        if buffer.first_content is not FirstContent.PRODUCED:
            filled.add(root)
    found = {}
    for at, op in enumerate(problem.ops):
        if not op.repeatable or len(op.writes) != 1:
            continue
        made = place[op.writes[0]]
        reads = {place[name].root for name in op.reads}
        is_alone = writers[made.root] == {at} and made.root not in filled | reads
        is_whole = made.begin == 0 and made.end == whole[made.root]
        if is_alone and is_whole and all(writers[root] <= {*before[at]} for root in reads):
            found[made.root] = at
    return found


def places_to_take(
    problem: Problem, place: Mapping[str, Part]
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """For each operation the (operand, result) of which the result may have the operand's place:
    it alone writes the result, as others might while it still reads the operand.
    """
    buffers = {buffer.name: buffer for buffer in problem.buffers}
    nbytes: dict[str, int] = defaultdict(int)
    for part in place.values():
        nbytes[part.root] = max(nbytes[part.root], part.end)
    writes = Counter(root for op in problem.ops for root in {place[n].root for n in op.writes})

    def may(operand: str, result: str) -> bool:
        its, other = buffers[operand], buffers[result]
        return (
            operand != result
            and nbytes[operand] == nbytes[result] > 0
            and problem.memory_of(its) == problem.memory_of(other)
            and its.pinned_at is None
            and other.pinned_at is None
            and writes[result] == 1
        )

    pairs = [[(place[a].root, place[b].root) for a, b in op.in_place] for op in problem.ops]
    return tuple(tuple(pair for pair in mine if may(*pair)) for mine in pairs)
