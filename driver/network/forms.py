"""A network as a command names it, in all its forms: float, integers, kernel calls, and data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Final

from tilefarm.target import Target

from driver.network.examples.zoo import model_files
from driver.network.frontend.data import Dataset, load_data
from driver.network.frontend.dynamic_dimensions import Extents
from driver.network.frontend.for_target import import_for
from driver.network.frontend.origins import Origin, origins
from driver.network.frontend.seeded import seeded_data
from driver.network.graph.ir import Graph
from driver.network.integer.network import Network
from driver.network.integer.qir import QuantGraph
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import fit_quantization
from driver.network.quantize.float_form import float_form
from driver.network.quantize.options import AS_USUAL, Quantization
from driver.network.quantize.processor_quantization import in_words

_WIDTH: Final = 100
_SEEDED_RUNS: Final = 4
"""Of a network that gives its ranges itself, where nobody gives data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSource:
    """What the user names.

    Attributes:
        model: an ONNX file, or a network that comes with tilefarm (`zoo:NAME`).
        calibration: an .npz file of inputs; not needed where the model gives every range.
        extents: of inputs and dimensions that the model leaves open.
        how: how it becomes integers.
    """

    model: Path | str
    calibration: Path | None = None
    extents: Extents = field(default_factory=dict)
    how: Quantization = AS_USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """One network; `data` are what it was calibrated on, `made_from` is by result.

    `is_seeded` says that there were no data, and these are random. `how` says how it became
    integers, `notes` what is to say of that.
    """

    graph: Graph
    made_from: Mapping[str, tuple[Origin, ...]]
    quantized: QuantGraph
    network: Network
    data: Dataset
    is_seeded: bool
    how: Quantization
    notes: tuple[str, ...]

    def quantized_words(self) -> Iterator[str]:
        """How it became integers, and why so where that was left open: lines of 100 columns."""
        if self.how.floats:
            yield str(self.how)
        elif not self.network.target.has_accelerator:
            yield in_words(self.graph, self.how)
        else:
            yield "int8 by the ranges in the model" if self.graph.ranges else f"int8 by {self.how}"
        for note in self.notes:
            yield from wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="  ")

    def samples(self, path: Path | None, most: int) -> Dataset:
        """At most so many samples of a file, or of the calibration data.

        Raises:
            DataError: the file does not fit the network.
        """
        data = self.data if path is None else load_data(path, self.graph)
        return data.first(most)


def forms_of(source: NetworkSource, target: Target) -> Forms:
    """The forms of what the user names.

    Raises:
        UserError: the model or the data cannot be used, or data are needed and there are none.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-network-") as folder:
        files = model_files(source.model, source.calibration, Path(folder))
        graph = import_for(target, files.model, source.extents)
        data = None if files.calibration is None else load_data(files.calibration, graph)
        made_from = origins(files.model, graph)
    inputs = None if data is None else data.inputs
    fitted = fit_quantization(target, graph, inputs, source.how)
    if target.has_accelerator:
        graph = float_form(graph, inputs, fitted.how)
    return Forms(
        graph=graph,
        made_from=made_from,
        quantized=fitted.quantized,
        network=partition_network(fitted.quantized, target),
        data=data or seeded_data(graph, _SEEDED_RUNS * graph.batch),
        is_seeded=data is None,
        how=fitted.how,
        notes=(*fitted.notes, *(data.notes if data is not None else ())),
    )
