"""The test cases of ONNX: models with inputs and the outputs that they must give.

They are those that the `onnx` package makes (one operator each, by the format's authors) and the
folders that it ships, of which `pytorch-converted` are layers as exporters wrote them.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.case import node as node_cases
from tilefarm.errors import DataError

CaseKind = Literal["float", "integer", "converted"]

_FOLDERS: Final = ("pytorch-converted", "pytorch-operator", "simple")
_INTEGER: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv"}
    | {"QLinearMatMul", "ConvInteger", "MatMulInteger"}
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One case: a model with inputs and the outputs that it must give."""

    name: str
    kind: CaseKind
    model: onnx.ModelProto
    inputs: tuple[NDArray[Any], ...]
    outputs: tuple[NDArray[Any], ...]

    @property
    def operator(self) -> str:
        """That of the first node."""
        return str(self.model.graph.node[0].op_type) if self.model.graph.node else "none"


def conformance_cases(folder: Path | None = None) -> Iterator[Case]:
    """The cases of a folder with a folder each, or all that the `onnx` package brings.

    Raises:
        DataError: there are none in the folder, or one cannot be read.
    """
    if folder is not None:
        yield from _stored(folder)
        return
    yield from made_cases()
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for name in _FOLDERS:
        yield from _stored(data / name)


def made_cases(modules: Sequence[str] = ()) -> Iterator[Case]:
    """The cases that the `onnx` package makes: of some of its modules, or of all.

    Importing a module makes its cases, which for some takes seconds.
    """
    names = modules or [module.name for module in pkgutil.iter_modules(node_cases.__path__)]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            importlib.import_module(f"{node_cases.__name__}.{name}")
    for each in {case.name: case for case in node_cases._NodeTestCases}.values():
        if each.model is None or not each.data_sets:
            continue
        inputs, outputs = each.data_sets[0]
        operators = {str(node.op_type) for node in each.model.graph.node}
        yield Case(
            name=each.name,
            kind="integer" if operators & _INTEGER else "float",
            model=each.model,
            inputs=tuple(map(_array, inputs)),
            outputs=tuple(map(_array, outputs)),
        )


def _array(value: Any) -> Any:
    """Numbers and tensors of the package's cases as arrays; other things as they are."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | float | int) else value


def _stored(folder: Path) -> Iterator[Case]:
    places = sorted(file.parent for file in folder.glob("*/model.onnx"))
    if not places:
        raise DataError(
            f"{folder}: no cases in it", "give a folder with a folder NAME/model.onnx for each"
        )
    for place in places:
        try:
            model = onnx.load(place / "model.onnx")
            data = place / "test_data_set_0"
            yield Case(
                name=f"{folder.name}/{place.name}",
                kind="converted" if folder.name.startswith("pytorch") else "float",
                model=model,
                inputs=_arrays(data, "input"),
                outputs=_arrays(data, "output"),
            )
        except Exception as error:  # damaged protobufs raise nearly anything
            raise DataError(
                f"{place}: cannot be read: {error}", "repair the case, or take it out"
            ) from None


def _arrays(folder: Path, what: str) -> tuple[NDArray[Any], ...]:
    files = sorted(folder.glob(f"{what}_*.pb"), key=lambda f: int(f.stem.rpartition("_")[2]))
    return tuple(numpy_helper.to_array(onnx.load_tensor(file)) for file in files)
