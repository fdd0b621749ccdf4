"""What the user's files hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tilefarm.digest import Digest

from driver.network import AnswerKind, Dataset, Graph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Files:
    """A network and its data; no calibration where the model has its own ranges.

    Attributes:
        is_seeded: nobody gave samples to evaluate; these are random.
        held_out: for each sample to evaluate whether it did not calibrate.
        kind: what the network answers.
    """

    graph: Graph
    calibration: Dataset | None
    evaluation: Dataset
    is_seeded: bool
    held_out: NDArray[np.bool_]
    kind: AnswerKind
    model_digest: Digest
