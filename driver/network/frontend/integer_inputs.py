"""Inputs on grids: the reals that integers stand for to those who read them, or become first."""

from __future__ import annotations

from dataclasses import replace

from driver.network.frontend.call import Scope
from driver.network.frontend.integers.grids import give_range
from driver.network.graph.grid import Grid


def open_doors(scope: Scope, wanted: set[str]) -> None:
    """Gives every input of integers its grid, and one of reals that to which it is rounded.

    That of integers is the one on which all nodes read the input, if they agree: then the integers
    become these reals before the network begins. Otherwise they are whole numbers to the network,
    too.

    Args:
        scope: of a model whose nodes have all been taken.
        wanted: the tensors that are outputs.
    """
    for name in scope.inputs:
        if name not in scope.grids:
            scope.inputs[name] = replace(scope.inputs[name], rounding=_rounding(scope, name))
            continue
        for (source, _, grid), reading in scope.readings.items():
            if source == name and reading not in wanted and _is_all(scope, name, reading):
                _merge(scope, name, reading)
                scope.grids[name] = grid
        grid = scope.grids[name]
        scope.inputs[name] = replace(scope.inputs[name], grid=grid)
        give_range(scope, name, grid)


def _rounding(scope: Scope, name: str) -> Grid | None:
    """The grid that the model brings an input of reals to, if it is only one."""
    grids = [grid for (source, grid), made in scope.pairs.items() if source == name == made]
    return grids[0] if len(grids) == 1 else None


def _is_all(scope: Scope, name: str, reading: str) -> bool:
    """Whether a reading is all that is made of an input."""
    return [node.output for node in scope.nodes if name in node.inputs] == [reading]


def _merge(scope: Scope, name: str, reading: str) -> None:
    """Makes an input what a node made of it."""
    kept = [node for node in scope.nodes if node.output != reading]
    scope.nodes[:] = [
        replace(node, inputs=tuple(name if source == reading else source for source in node.inputs))
        for node in kept
    ]
