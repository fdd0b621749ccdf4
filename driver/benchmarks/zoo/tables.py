"""What came of the zoo as text: a table of accuracy, one of the target, what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from driver.benchmarks.figures import figure_table
from driver.benchmarks.zoo.goals import goals
from driver.benchmarks.zoo.records import RefusedNetwork, Tried
from driver.benchmarks.zoo.scores import score_text
from driver.network import value_text
from driver.report.cost import microseconds
from driver.report.terminal.tables import gmacs
from driver.report.terminal.text_table import text_table


def tables(
    rows: Sequence[Tried], refused: Sequence[RefusedNetwork], skipped: Mapping[str, str]
) -> Iterator[str]:
    """Lines of both tables, what they need to be understood, and the verdict."""
    if rows:
        yield from text_table(_ACCURACY, [_accuracy(row) for row in rows])
        yield ""
        yield from _machine_table(rows)
        yield ""
    yield from _notes(rows)
    for name, why in skipped.items():
        yield f"skipped  {name}: {why}"
    for each in refused:
        yield f"REFUSED  {each.name}: {each.why}"
    for row in rows:
        for finding in row.findings:
            yield f"FAILS    {row.name}: {finding}"
    figures = [figure for row in rows for figure in goals(row)]
    if figures:
        yield ""
        yield from figure_table(figures)
        yield ""
    right = sum(not row.findings for row in rows)
    yield f"{right} of {len(rows) + len(refused)} networks pass"


def document(
    rows: Sequence[Tried], refused: Sequence[RefusedNetwork], skipped: Mapping[str, str]
) -> dict[str, Any]:
    """Everything as JSON can say it."""
    return {
        "networks": [_row_document(row) for row in rows],
        "refused": {each.name: each.why for each in refused},
        "skipped": dict(skipped),
        "passes": not refused and not any(row.findings for row in rows),
    }


def _row_document(row: Tried) -> dict[str, Any]:
    document = asdict(row)
    recipe = document.pop("recipe")
    return {
        **document,
        **document.pop("use"),
        **{name: recipe[name] for name in ("task", "metric", "published")},
        "compared": [each.document() for each in row.compared],
        "findings": row.findings,
        "figures": [figure.row() for figure in goals(row)],
    }


_ACCURACY = (
    "network",
    "samples",
    "float",
    "integers",
    "device",
    "gate",
    "like float",
    "ORT",
    "ORT here",
    "ORT int8",
    "differ",
)
_MACHINE = (
    "network",
    "MACs on acc",
    "crossings",
    "SQNR dB",
    "ORT int8 dB",
    "plain cycles",
    "predicted",
    "first answer",
    "all",
)


def _accuracy(row: Tried) -> tuple[str, ...]:
    def text(score: float | None) -> str:
        return score_text(row.recipe.metric, score)

    like = row.against_float
    here = text(row.peer) if row.labels else "-" if row.peer_db is None else f"{row.peer_db:.1f} dB"
    return (
        row.name,
        str(row.labels or row.samples),
        *(text(score) for score in (row.floats, row.integers, row.device, row.gate)),
        f"{value_text(like.unit, like.device)} {like.name}",
        row.recipe.published or "-",
        here,
        text(row.peer_int8),
        str(row.differing),
    )


_PROCESSOR = (
    "network",
    "MACs",
    "SQNR dB",
    "ORT int8 dB",
    "untuned",
    "GMAC/s",
    "first answer",
    "all",
)


def _machine_table(rows: Sequence[Tried]) -> Iterator[str]:
    """What the networks need of an accelerator, or of a processor."""
    if all(row.use.share is None for row in rows):
        return text_table(_PROCESSOR, [_processor(row) for row in rows])
    return text_table(_MACHINE, [_machine(row) for row in rows])


def _processor(row: Tried) -> tuple[str, ...]:
    use, seconds = row.use, row.use.program_seconds
    return (
        row.name,
        str(use.macs),
        *_noise(row),
        "-" if seconds is None else microseconds(seconds),
        gmacs(use.macs / seconds if seconds else None),
        f"{use.ready_seconds:.1f} s",
        f"{row.seconds:.1f} s",
    )


def _noise(row: Tried) -> tuple[str, str]:
    return (
        "exact" if row.sqnr_db is None else f"{row.sqnr_db:.1f}",
        "-" if row.peer_int8_db is None else f"{row.peer_int8_db:.1f}",
    )


def _machine(row: Tried) -> tuple[str, ...]:
    use = row.use
    return (
        row.name,
        "-" if use.share is None else f"{100 * use.share:.1f} %",
        str(use.crossings),
        *_noise(row),
        str(use.plain_cycles or "-"),
        str(use.predicted_cycles or "-"),
        f"{use.ready_seconds:.1f} s",
        f"{row.seconds:.1f} s",
    )


def _notes(rows: Sequence[Tried]) -> Iterator[str]:
    if any(row.recipe.published for row in rows):
        yield "ORT: ONNX Runtime's score of the same file, as the README of the zoo has it"
    if any(row.peer_int8_db is not None for row in rows):
        yield "ORT int8: its own symmetric int8, a scale a channel, calibrated by the same data"
    if any(row.recipe.metric == "auc" for row in rows):
        yield "samples of the autoencoder are clips; its score is the area under the ROC curve"
    if any(row.labels and row.gate is None for row in rows):
        yield "where there is no gate, too few samples were scored to judge"
    if rows:
        yield "like float: the device's answers against the float network's, as SQNR is"
    if any(row.is_seeded for row in rows):
        yield "networks without data got seeded random inputs"
