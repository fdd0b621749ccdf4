"""Which workload is meant, and which schedule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.kernels.nests import EXAMPLES, SIM, conv2d, dense
from tilefarm.errors import DataError, SettingsError
from tilefarm.trace import Trace

from compile_worker.space import generate
from driver.commands.compile_steps.choosing import Listed, chosen, points_in_space
from driver.program.vta.schedules import Choice, trace_of

WORKS = (conv2d(1, 2, 8, 8), conv2d(2, 2, 8, 8), dense(4, 2), EXAMPLES["softmax"])
ROWS = [
    Listed(number=n, workload=w, place="cpu", macs=1, steps=(f"layer{n}",))
    for n, w in enumerate(WORKS, 1)
]


@pytest.mark.parametrize(
    ("words", "number"),
    [("1", 1), ("conv2d_1x2", 2), ("dense", 3), ("layer4", 4), (WORKS[0].name, 1)],
)
def test_a_workload_is_named_in_many_ways(words: str, number: int) -> None:
    assert chosen(ROWS, words).number == number


def test_what_fits_none_or_several_is_listed() -> None:
    with pytest.raises(SettingsError, match="2 workloads fit --workload conv2d: 1 conv2d"):
        chosen(ROWS, "conv2d")
    with pytest.raises(SettingsError) as some:
        chosen(ROWS[1:], None)
    assert some.value.hint == "choose one by its number: --workload 2", "one that fits"
    with pytest.raises(SettingsError, match=f"no such workload\n.*1 {WORKS[0].name}, 2"):
        chosen(ROWS, "7")
    with pytest.raises(SettingsError, match="4 workloads fit"):
        chosen(ROWS, None)
    assert chosen(ROWS[:1], None) is ROWS[0]


def test_schedules(tmp_path: Path) -> None:
    work = WORKS[0]
    made = generate(work, SIM)
    plain = made.trace(dict(made.space.default))
    assert trace_of(Choice(), work, SIM) == plain
    assert trace_of(Choice(), EXAMPLES["softmax"], SIM) == Trace()
    assert trace_of(Choice(trace="predicted"), work, SIM) != plain
    file = tmp_path / "t.json"
    file.write_text(plain.to_json())
    assert trace_of(Choice(trace=str(file)), work, SIM) == plain
    file.write_text(json.dumps({"tile_co": 2}))
    assert trace_of(Choice(point=file), work, SIM) != plain


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "a point is a JSON object"),
        ("{", "not JSON"),
        ('{"tile_cow": 2}', "'tile_cow' is no variable"),
        ('{"tile_co": 3}', "the point breaks domain:tile_co, which has no such value"),
        ('{"tile_co": -1}', "the point breaks domain:tile_co, which has no such value"),
        ('{"tile_order": 1180591620717411303424}', "the point breaks domain:tile_order"),
    ],
)
def test_bad_points(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "p.json"
    file.write_text(text)
    with pytest.raises(DataError, match=why):
        trace_of(Choice(point=file), WORKS[0], SIM)


def test_bad_traces(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text("{}")
    with pytest.raises(DataError, match="not a trace"):
        trace_of(Choice(trace=str(file)), WORKS[0], SIM)
    with pytest.raises(DataError, match="cannot be read"):
        trace_of(Choice(trace="defualt"), WORKS[0], SIM)
    with pytest.raises(DataError, match="no records of a run"):
        trace_of(Choice(best_of=tmp_path), WORKS[0], SIM)
    with pytest.raises(SettingsError, match="no search space"):
        trace_of(Choice(trace="predicted"), EXAMPLES["softmax"], SIM)


def test_only_layers_have_points() -> None:
    assert points_in_space(EXAMPLES["softmax"], SIM) is None
    found = points_in_space(WORKS[2], SIM)
    assert found is not None
    assert found.points > 1
    assert found.is_exact


def test_a_layer_without_room_on_the_accelerator_is_one_of_the_processor() -> None:
    cramped = replace(SIM, limits=replace(SIM.limits, kernel_uops=1))
    assert points_in_space(WORKS[0], cramped) is None
    assert trace_of(Choice(), WORKS[0], cramped) == Trace()
    with pytest.raises(SettingsError, match="nothing fits on sim"):
        trace_of(Choice(trace="predicted"), WORKS[0], cramped)
