"""Who waits for whom: what the given order of a problem means, whatever order is planned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilefarm.errors import UserError

from driver.memory.problem import FirstContent, Problem, whole_of

_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Part:
    """Where a buffer's bytes are: from `begin` to `end` of the buffer `root`."""

    root: str
    begin: int
    end: int


@dataclass(slots=True)
class _Version:
    """Who wrote what bytes hold now, operation and buffer, who has read them since, and who read
    what they held before.
    """

    writers: list[tuple[int, str]] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    readers_before: list[int] = field(default_factory=list)


def parts(problem: Problem) -> dict[str, Part]:
    """For each buffer where its bytes are: of a view in the whole, of a group in its first one."""
    by_name = {b.name: b for b in problem.buffers}
    first: dict[str, str] = {}
    found = {}
    for buffer in problem.buffers:
        whole, begin = whole_of(buffer, by_name)
        root = first.setdefault(whole.group, whole.name) if whole.group else whole.name
        found[buffer.name] = Part(root, begin, begin + buffer.nbytes)
    return found


def dependencies(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """For each operation, by number, those that end before it begins.

    Raises:
        UserError: operations wait for one another, or one reads what nobody wrote.
    """
    place = parts(problem)
    filled = {
        place[b.name].root for b in problem.buffers if b.first_content is not FirstContent.PRODUCED
    }
    writers: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for at, op in enumerate(problem.ops):
        for name in op.writes:
            writers[place[name].root].append((at, name))
    number = {op.name: at for at, op in enumerate(problem.ops)}
    versions: dict[str, _Version] = defaultdict(_Version)
    before: list[set[int]] = []
    for at, op in enumerate(problem.ops):
        mine: set[int] = set()
        for name in op.reads:
            root = place[name].root
            version = versions[root]
            is_empty = place[name].begin == place[name].end
            others = {
                writer
                for writer, other in writers[root]
                if is_empty or _meet(place[other], place[name])
            } - {at}
            if root in filled or any(other < at for other in others):
                mine.update(writer for writer, _ in version.writers)
                if version.readers[-1:] != [at]:
                    version.readers.append(at)
            elif others:
                mine |= others
            else:
                raise UserError(
                    f"operation {op.name} reads {name}, which nobody writes",
                    "an operation that writes it, or a `first_content` for it",
                )
        for name in op.writes:
            mine |= _write(versions[place[name].root], at, name, place)
        before.append(mine - {at} | {number[name] for name in op.after})
    _require_an_order(problem, before)
    return tuple(tuple(sorted(each)) for each in before)


def _meet(one: Part, other: Part) -> bool:
    return one.begin < other.end and other.begin < one.end


def _write(version: _Version, at: int, name: str, place: Mapping[str, Part]) -> set[int]:
    """Notes that an operation writes a buffer; whom it waits for."""
    mine = place[name]
    if version.readers:
        version.readers_before, version.readers, version.writers = version.readers, [], []
    waits = set(version.readers_before)
    waits |= {
        writer for writer, other in version.writers if other != name and _meet(place[other], mine)
    }
    version.writers.append((at, name))
    return waits


def _require_an_order(problem: Problem, before: Sequence[set[int]]) -> None:
    after: list[list[int]] = [[] for _ in before]
    for at, mine in enumerate(before):
        for each in mine:
            after[each].append(at)
    left = [len(mine) for mine in before]
    ready = [at for at, count in enumerate(left) if not count]
    while ready:
        for each in after[ready.pop()]:
            left[each] -= 1
            if not left[each]:
                ready.append(each)
    stuck = [problem.ops[at].name for at, count in enumerate(left) if count]
    if stuck:
        names = ", ".join(stuck[:_MOST_NAMES]) + (", ..." if len(stuck) > _MOST_NAMES else "")
        raise UserError(
            f"operations wait for one another: {names}",
            "another order of the rows, or fewer `after` and `in_order`",
        )
