"""A small finished run to draw reports of."""

from __future__ import annotations

import math
from dataclasses import replace

from tilefarm.measurement import TimelineEvent

from driver.network.accuracy.judgement import Judgement
from driver.network.accuracy.judging import Compared
from driver.network.accuracy.promise import Promise
from driver.report.cost import Cost
from driver.report.summary import (
    Accuracy,
    ArenaPlan,
    ArenaRect,
    KernelTimeline,
    LayerRow,
    RunOrigin,
    RunSummary,
    SessionFigures,
    TrialRow,
    WorkloadRow,
)
from driver.run_events import Span, TimeBreakdown


def a_summary(title: str = "digits.onnx", name: str = "conv2d_1x2x8x8") -> RunSummary:
    """Two workloads, 20 trials of which one timed out, two devices, three tensors."""
    other = "dense_1x4"
    conv = _workload(name, 2, 9000, 3000)
    trials = tuple(
        TrialRow(
            number=n,
            workload=name if n % 2 else other,
            status="run_timeout" if n == 7 else "ok",
            cycles=None if n == 7 else 9000 - 300 * n,
            ended_seconds=n / 4,
            device=f"sim{n % 2}",
            why="no answer within 10 s" if n == 7 else "",
            is_default=n <= 2,
        )
        for n in range(1, 21)
    )
    return RunSummary(
        run=RunOrigin(
            title=title,
            model_digest="ab" * 32,
            target="sim",
            target_digest="cd" * 32,
            began="2026-01-02T03:04:05Z",
            seed=7,
            proposer="guided",
        ),
        session=SessionFigures(
            total_seconds=12.0,
            search_seconds=6.0,
            first_measured_seconds=2.5,
            trials_per_second=3.3,
            trials_this_session=20,
            split=TimeBreakdown(
                propose_seconds=0.1, compile_seconds=2, transfer_seconds=0.2, run_seconds=1.5
            ),
        ),
        workloads=(conv, _workload(other, 1, 2000, None)),
        layers=(_layer("conv_1", "accelerator", conv), _layer("pool", "cpu", None)),
        trials=trials,
        spans=tuple(
            Span(
                lane=lane,
                kind=kind,
                label=f"trial {n}",
                begin_seconds=n / 4 + shift,
                end_seconds=n / 4 + shift + 0.2,
            )
            for n in range(20)
            for lane, kind, shift in (("compile 0", "compile", 0.0), ("sim0", "run", 0.25))
        ),
        arena=ArenaPlan(
            nbytes=6144,
            bound_nbytes=6000,
            given_nbytes=6144,
            unshared_nbytes=9000,
            steps=("quantize", "conv_1", "pool"),
            rects=(
                ArenaRect(name="x", begin_step=0, end_step=2, offset=0, nbytes=2048),
                ArenaRect(name="y", begin_step=1, end_step=3, offset=2048, nbytes=4096),
                ArenaRect(name="z", begin_step=2, end_step=3, offset=0, nbytes=1024),
            ),
        ),
        timeline=KernelTimeline(
            workload=name,
            layer="conv_1",
            cycles=3000,
            events=tuple(
                TimelineEvent(
                    module=module, name=what, begin_cycle=300 * n + at, end_cycle=300 * n + at + 200
                )
                for n in range(9)
                for module, what, at in (
                    ("load", "load inp", 0),
                    ("compute", "gemm", 50),
                    ("compute", "alu max", 251),
                    ("store", "store", 60),
                )
            ),
        ),
        accuracy=Accuracy(
            images=100,
            labelled=100,
            kind="classes",
            compared=(
                Compared(
                    name="top-1",
                    against="labels",
                    unit="%",
                    floats=98.0,
                    reference=97.0,
                    device=97.0,
                ),
                Compared(
                    name="SNR",
                    against="float",
                    unit="dB",
                    floats=None,
                    reference=31.25,
                    device=math.inf,
                ),
            ),
            differing=0,
            judgement=Judgement(
                promise=Promise(),
                title="top-1 of labels",
                floats=98.0,
                integers=97.0,
                samples=100,
                is_held_out=True,
                is_of_labels=True,
            ),
        ),
        network_cycles=8123,
        facts=(("ray", "2.60"), ("resume", "about 1 s")),
    )


def by_the_clock(summary: RunSummary) -> RunSummary:
    """The same from a device that counts no cycles; each would have been a tenth of a us."""

    def seconds(cycles: int | None) -> float | None:
        return None if cycles is None else 1e-7 * cycles

    def timed(row: WorkloadRow) -> WorkloadRow:
        default, best = (Cost(seconds=seconds(each.cycles)) for each in (row.default, row.best))
        return replace(row, default=default, best=best)

    return replace(
        summary,
        workloads=tuple(map(timed, summary.workloads)),
        layers=tuple(
            replace(each, workload=timed(each.workload)) if each.workload else each
            for each in summary.layers
        ),
        trials=tuple(
            replace(t, cycles=None, kernel_seconds=seconds(t.cycles)) for t in summary.trials
        ),
        timeline=None,
        network_cycles=None,
        network_seconds=8.123e-4,
    )


def _workload(name: str, count: int, default: int, best: int | None) -> WorkloadRow:
    return WorkloadRow(
        name=name,
        operator="conv2d",
        shape="32→32 8x8 3x3",
        count=count,
        macs=589_824,
        ideal_cycles=2304,
        default=Cost(default),
        best=Cost(best or 600),
        trials=10,
        failures=(("run_timeout", 1),),
        best_point=(("tile_h", 4), ("tile_w", 8)),
    )


def _layer(name: str, place: str, workload: WorkloadRow | None) -> LayerRow:
    return LayerRow(
        name=name,
        operator="conv2d",
        place=place,
        why="the GEMM unit has it",
        shape="32→32 8x8",
        macs=589_824,
        output_nbytes=2048,
        workload=workload,
    )
