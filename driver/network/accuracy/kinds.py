"""The kinds of answers that networks give, and the labels that each takes: no arrays here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from tilefarm.errors import SettingsError

AnswerKind: TypeAlias = Literal["classes", "pixels", "boxes", "embeddings", "images", "values"]
ANSWER_KINDS: Final[tuple[AnswerKind, ...]] = get_args(AnswerKind)

LABELS_OF: Final[Mapping[AnswerKind, str]] = {
    "classes": "[samples]: class numbers from 0",
    "pixels": "the first output's shape without the axis of the classes: class numbers from 0,"
    " 255 or below 0 where a place does not count",
    "boxes": "[samples, boxes, 5]: class, left, top, right, bottom; class -1 fills up",
    "embeddings": "[samples]: a number for each identity",
    "images": "the first output's shape",
    "values": "the first output's shape",
}
"""The labels that each kind takes."""


def check_kind(kind: str) -> None:
    """Nothing if there is such a kind.

    Raises:
        SettingsError: there is none.
    """
    if kind not in ANSWER_KINDS:
        raise SettingsError(f"--judge {kind}: no such kind", f"one of {', '.join(ANSWER_KINDS)}")
