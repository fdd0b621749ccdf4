"""Searches a space of schedules: proposers, cost model, trial allocation, records."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

from tilefarm.errors import SettingsError
from tilefarm.space import SearchSpace

from tuner.proposer import Proposer

PROPOSERS: Final[Mapping[str, str]] = {
    "random": "tuner.random_search:RandomSearch",
    "grid": "tuner.grid_search:GridSearch",
    "evolution": "tuner.evolution:Evolution",
    "genetic": "tuner.genetic:Genetic",
    "annealing": "tuner.annealing:Annealing",
    "mutation": "tuner.mutation:Mutation",
    "guided": "tuner.guided:make_guided",
}
"""Proposers by name. Strings, so that naming one does not import them all."""


def make_proposer(name: str, space: SearchSpace, seed: int) -> Proposer:
    """A fresh proposer of one of PROPOSERS.

    Raises:
        SettingsError: there is none of that name.
    """
    if name not in PROPOSERS:
        raise SettingsError(f"unknown proposer {name!r}", f"one of {', '.join(PROPOSERS)}")
    module, _, attribute = PROPOSERS[name].partition(":")
    return cast(Proposer, getattr(import_module(module), attribute)(space, seed))
