"""A farm in a terminal: what every device is doing and how much, who has how many, who waits.

Numbers are whole; words of others (names, labels, reasons) are cut off where it is narrow. On a
short screen the devices that need somebody come first, then those that work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text
from tilefarm.lease import label_words
from tilefarm.plural import plural
from tilefarm.printable import printable
from tilefarm.rpc.tracker_calls import Devices, DeviceState, Usage, Waiting

from driver.report.terminal.elapsed import ago

_WIDE: Final = 100
_GAP: Final = "  "
_MOST_HOLDERS: Final = 6


def farm_view(farm: Devices, *, width: int, height: int | None = None) -> RenderableType:
    """All of it.

    Args:
        farm: as its tracker tells.
        width: of the terminal.
        height: of the terminal; None: print everything.
    """
    head = [_cut(line, width) for line in _head(farm)]
    line = ["", *_table(_waiting_columns(farm.waiting), width)] if farm.waiting else []
    if height is not None:
        line = line[: height // 3]
    states, more = farm.states, []
    if height is not None and len(head) + 2 + len(states) + len(line) > height:
        room = max(1, height - len(head) - 3 - len(line))
        states = tuple(sorted(farm.states, key=_urgency)[:room])
        more = [f"and {len(farm.states) - room} more; --once prints all"]
    devices = _table(_device_columns(states, wide=width >= _WIDE), width)
    titles = {head[0], devices[0], *line[1:2]}
    return Group(
        *(
            Text(words, style="bold" if words in titles else "")
            for words in (*head, "", *devices, *more, *line)
        )
    )


def _head(farm: Devices) -> list[str]:
    states = farm.states
    used = sum(bool(state.owner) for state in states)
    out = sum(bool(state.draining or state.quarantine) for state in states)
    lines = [
        f"{plural(len(states), 'device')}: {used} in use, {out} out of service;"
        f" {len(farm.waiting)} waiting"
    ]
    told = [state.lately for state in states if state.lately is not None]
    if told:
        runs = sum(map(_per_second, told))
        busy = sum(map(_share, told)) / len(told)
        lines.append(f"{runs:.1f} runs/s, devices are busy {_percent(busy)} of the time")
    holders = Counter(state.user or state.owner for state in states if state.owner)
    if holders:
        most = [f"{name} {count}" for name, count in holders.most_common(_MOST_HOLDERS)]
        others = len(holders) - len(most)
        lines.append(f"held by {', '.join(most)}" + (f", {others} others" if others else ""))
    return lines


@dataclass(frozen=True, slots=True)
class _Column:
    """Cells of one kind: numbers, or `words` of others that may be cut off."""

    title: str
    cells: Sequence[str]
    words: bool = True


def _device_columns(states: Sequence[DeviceState], *, wide: bool) -> list[_Column]:
    """What is empty for all of them is left out."""
    names = [state.device.name for state in states]
    labels = [label_words(state.device) for state in states]
    told = [state.lately or Usage() for state in states]
    runs = [f"{_per_second(usage):.1f}" if usage.up_seconds else "" for usage in told]
    busy = [_percent(_share(usage)) if usage.up_seconds else "" for usage in told]
    since = [ago(state.leased_seconds) if state.owner else "" for state in states]
    columns = [
        _Column("labels", labels if wide else []),
        _Column("runs/s", runs, words=False),
        _Column("busy", busy, words=False),
        _Column("user", [state.user for state in states]),
        _Column("for", [state.owner or "free" for state in states]),
        _Column("since", since, words=False),
        _Column("refuses", [_count(state.refused) for state in states], words=False),
        _Column("out of service", [_why_out(state) for state in states]),
    ]
    return [_Column("device", names), *(column for column in columns if any(column.cells))]


def _waiting_columns(waiting: Sequence[Waiting]) -> list[_Column]:
    users = _Column("user", [place.user for place in waiting])
    return [
        _Column("waiting for a device", [place.owner for place in waiting]),
        *([users] if any(users.cells) else []),
        _Column("priority", [str(place.priority) for place in waiting], words=False),
        _Column("since", [ago(place.waited_seconds) for place in waiting], words=False),
    ]


def _table(columns: Sequence[_Column], room: int) -> list[str]:
    """Lines that are no longer than the width, unless even the numbers are."""
    widths = [max(cell_len(printable(cell)) for cell in (c.title, *c.cells)) for c in columns]
    words = [n for n, column in enumerate(columns) if column.words]
    while sum(widths) + len(_GAP) * (len(columns) - 1) > room:
        widest = max(words, key=lambda n: widths[n])
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
    rows = [[column.title for column in columns], *zip(*(c.cells for c in columns), strict=True)]
    return [
        _GAP.join(
            _placed(cell, width, left=column.words)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ).rstrip()
        for row in rows
    ]


def _placed(cell: str, width: int, *, left: bool) -> str:
    shown = _cut(cell, width)
    room = " " * (width - cell_len(shown))
    return shown + room if left else room + shown


def _cut(words: str, width: int) -> str:
    """Words of others in so much room."""
    plain = printable(words)
    return plain if cell_len(plain) <= width else set_cell_size(plain, width - 1) + "…"


def _count(number: int) -> str:
    return str(number) if number else ""


def _urgency(state: DeviceState) -> tuple[bool, bool, str]:
    """Which devices a short screen shows: lower ones first."""
    return not _why_out(state), not state.owner, state.device.name


def _why_out(state: DeviceState) -> str:
    return state.quarantine or state.draining or state.resting


def _per_second(usage: Usage) -> float:
    return usage.runs / usage.up_seconds if usage.up_seconds else 0.0


def _share(usage: Usage) -> float:
    return min(1.0, usage.busy_seconds / usage.up_seconds) if usage.up_seconds else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
