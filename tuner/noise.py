"""Costs that a noisy clock cannot tell apart are one cost, so that nobody learns from chance.

costs    1.00  1.01  1.05  1.06      noise 2 %: each counts as the lowest
levels   1.00  1.00  1.05  1.05      that it cannot be told from
"""

from __future__ import annotations

import numpy as np

from tuner.cost_model import Floats


def told_apart(costs: Floats, noise: float) -> Floats:
    """The costs [n] as levels that lie further apart than the noise, a share of the cost."""
    if not noise:
        return costs
    levels, level = np.empty_like(costs), -np.inf
    for at in np.argsort(costs, kind="stable"):
        if costs[at] > level * (1 + noise):
            level = costs[at]
        levels[at] = level
    return levels
