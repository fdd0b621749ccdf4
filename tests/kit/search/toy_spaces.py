"""Small search spaces with known answers, and a synthetic cost to tune on."""

from __future__ import annotations

import math
from dataclasses import replace

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial, WallTime
from tilefarm.space import (
    ESTIMATE,
    Constraint,
    Le,
    Point,
    Prod,
    SearchSpace,
    Select,
    Sum,
    Table,
    Variable,
)


def divisors(n: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, n + 1) if n % d == 0)


def pair_space(extent: int = 12, limit: int = 6) -> SearchSpace:
    """outer * inner == extent, inner <= limit."""
    return SearchSpace(
        name="pair",
        version=1,
        variables=(
            Variable(name="extent", domain=(extent,), tunable=False),
            Variable(name="outer", domain=divisors(extent), tunable=False),
            Variable(name="inner", domain=divisors(extent)),
        ),
        constraints=(
            Prod(name="prod", product="extent", factors=("outer", "inner")),
            Le(name="small", left="inner", bound=limit),
        ),
        default=(("inner", 1), ("outer", extent), ("extent", extent)),
    )


def conv_like_space(
    h: int = 56, w: int = 56, co: int = 4, ci: int = 4, kernel: int = 3
) -> SearchSpace:
    """A convolution on a VTA-like accelerator: tiles, order of loops, slots, capacities."""
    variables: list[Variable] = []
    constraints: list[Constraint] = []

    def constant(name: str, value: int) -> None:
        variables.append(Variable(name=name, domain=(value,), tunable=False))

    def derived(name: str, *factors: str, scale: int = 1) -> None:
        variables.append(Variable(name=name, tunable=False))
        constraints.append(
            Prod(name=f"def_{name}", product=name, factors=factors, coefficient=scale)
        )

    def total(name: str, *terms: tuple[int, str], constant: int = 0) -> None:
        variables.append(Variable(name=name, tunable=False))
        constraints.append(Sum(name=f"def_{name}", total=name, terms=terms, constant=constant))

    for axis, extent in (
        ("h", h),
        ("w", w),
        ("co", co),
        ("ci", ci),
        ("kh", kernel),
        ("kw", kernel),
    ):
        constant(f"extent_{axis}", extent)
        variables.append(Variable(name=f"tile_{axis}", domain=divisors(extent)))
        variables.append(Variable(name=f"outer_{axis}", domain=divisors(extent), tunable=False))
        constraints.append(
            Prod(
                name=f"prod_{axis}",
                product=f"extent_{axis}",
                factors=(f"outer_{axis}", f"tile_{axis}"),
            )
        )
    variables.append(Variable(name="slots", domain=(1, 2)))
    variables.append(Variable(name="acc_slots", domain=(1, 2)))
    variables.append(Variable(name="load_at", domain=(0, 1, 2), labels=("tile", "row", "all")))
    total("tile_ih", (1, "tile_h"), (1, "tile_kh"), constant=-1)
    total("tile_iw", (1, "tile_w"), (1, "tile_kw"), constant=-1)
    derived("inp_elements", "tile_ci", "tile_ih", "tile_iw", "slots")
    derived("wgt_elements", "tile_co", "tile_ci", "tile_kh", "tile_kw", "slots")
    derived("acc_elements", "tile_co", "tile_h", "tile_w", "acc_slots")
    for scope, capacity in (("inp", 2048), ("wgt", 1024), ("acc", 2048)):
        constraints.append(Le(name=f"{scope}_sram", left=f"{scope}_elements", bound=capacity))
    derived("steps", "outer_h", "outer_w", "outer_co", "outer_ci", "outer_kh", "outer_kw")
    derived("tiles", "outer_h", "outer_w", "outer_co")
    derived("inp_loads", "steps", "inp_elements")
    derived("wgt_per_step", "steps", "wgt_elements")
    derived("wgt_per_row", "outer_w", "outer_co", "outer_ci", "wgt_elements")
    derived("wgt_once", "outer_co", "outer_ci", "outer_kh", "outer_kw", "wgt_elements")
    variables.append(Variable(name="wgt_loads", tunable=False))
    constraints.append(
        Select(
            name="def_wgt_loads",
            value="wgt_loads",
            choice="load_at",
            options=("wgt_per_step", "wgt_per_row", "wgt_once"),
        )
    )
    derived("tile_rows", "tile_h", "tile_kh")
    variables.append(Variable(name="folds", domain=(0, 1), tunable=False))
    pairs = [(th, tw) for th in divisors(h) for tw in divisors(w)]
    constraints.append(
        Table(
            name="dma_shape",
            variables=("tile_h", "tile_w", "folds"),
            rows=tuple((th, tw, int(tw == w)) for th, tw in pairs if th * tw >= 3),
        )
    )
    default = {"slots": 1, "acc_slots": 1, "load_at": 0}
    default |= {f"tile_{a}": 1 for a in ("h", "co", "ci", "kh", "kw")} | {
        "tile_w": min(d for d in divisors(w) if d >= 3)
    }
    return SearchSpace(
        name="conv_like",
        version=1,
        variables=tuple(variables),
        constraints=tuple(constraints),
        default=tuple(default.items()),
    )


def conv_like_cycles(point: Point) -> int:
    """A plausible cost of a conv_like point: compute against memory, overlapped with two slots."""
    macs = math.prod(point[f"extent_{a}"] for a in ("h", "w", "co", "ci", "kh", "kw"))
    inner = point["tile_co"] * point["tile_ci"] * point["tile_kw"]
    loops = macs / inner * 2.5
    compute = macs + loops + 150 * point["steps"] + 5 * point["tiles"]
    rows = point["steps"] * (1 if point["folds"] else point["tile_ih"]) * point["tile_ci"]
    memory = (
        point["inp_loads"] * 2 / point["slots"]
        + point["wgt_loads"] * 32 / point["slots"]
        + 24 * rows
        + 60 * point["steps"]
    )
    stores = macs / (point["extent_ci"] * point["extent_kh"] * point["extent_kw"]) * 3
    stores = stores + 40 * point["tiles"]
    hidden = max(compute, memory) if point["slots"] == 2 else compute + memory
    return round(max(hidden, stores) if point["acc_slots"] == 2 else hidden + stores)


def with_estimate(space: SearchSpace) -> SearchSpace:
    """The space with an estimate: of a convolution its loads, weighted; else the first tunable."""
    loads = ((2, "inp_loads"), (32, "wgt_loads"))
    has_loads = any(v.name == "inp_loads" for v in space.variables)
    terms = loads if has_loads else ((1, space.tunables[0].name),)
    return replace(
        space,
        variables=(*space.variables, Variable(name=ESTIMATE, tunable=False)),
        constraints=(*space.constraints, Sum(name="estimated", total=ESTIMATE, terms=terms)),
    )


def empty_space() -> SearchSpace:
    """inner * outer == 7, 2 <= inner <= 6: nothing. `idle` has nothing to do with it."""
    return SearchSpace(
        name="empty",
        version=1,
        variables=(
            Variable(name="extent", domain=(7,), tunable=False),
            Variable(name="inner", domain=(1, 2, 3, 4, 5, 6, 7)),
            Variable(name="outer", domain=(1, 7), tunable=False),
            Variable(name="two", domain=(2,), tunable=False),
        ),
        constraints=(
            Le(name="idle", left="inner", bound=7),
            Prod(name="prod", product="extent", factors=("outer", "inner")),
            Le(name="at_most_six", left="inner", bound=6),
            Le(name="at_least_two", left="two", bound="inner"),
        ),
        default=(("inner", 1),),
    )


def trial_of(
    point: Point,
    status: Status = Status.OK,
    cycles: int | None = None,
    task: str = "toy",
    wall_time: WallTime | None = None,
) -> Trial:
    """The record of a candidate; its trace is as unique as its point."""
    return Trial(
        workload=Digest.of(task.encode()),
        trace=Digest.of_json(dict(point)),
        point=tuple(sorted(point.items())),
        status=status,
        cycles=cycles,
        wall_time=wall_time,
    )


def timed(seconds: float, noise: float = 0.0) -> WallTime:
    """A median of so many seconds from 25 regions, whose `Trial.noise` is that."""
    half = noise * seconds * 5 / (4 * 1.2533 / 2.5631)
    return WallTime(
        minimum_seconds=seconds - half,
        p10_seconds=seconds - half,
        median_seconds=seconds,
        p90_seconds=seconds + half,
        calls=1,
        regions=25,
    )
