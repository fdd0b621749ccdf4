"""Networks that come with tilefarm, made integers once in a process however often one is asked for.

For tests of what is done with a network, not of how it becomes integers. They put `forms_once` in
the place of `driver.network.forms.forms_of`, which every command calls.
"""

from __future__ import annotations

from functools import cache

from tilefarm.target import Target

from driver.network.forms import Forms, NetworkSource, forms_of
from driver.network.quantize.options import Quantization


@cache
def _of_the_zoo(model: str, how: Quantization, target: Target) -> Forms:
    return forms_of(NetworkSource(model=model, how=how), target)


def forms_once(source: NetworkSource, target: Target) -> Forms:
    """The forms of what the user names, as `driver.network.forms.forms_of` says."""
    model = str(source.model)
    if not model.startswith("zoo:") or source.calibration is not None or source.extents:
        return forms_of(source, target)
    return _of_the_zoo(model, source.how, target)
