"""The operators of the files that were named with `--plugin`, or that installed packages bring.

A package brings some by an entry point of the group `tilefarm.plugins`: a module that declares
them. A process loads what it is told to, once, and never anything because a model asks for it.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

from tilefarm.errors import SettingsError, TilefarmError

from driver.network.frontend.custom.operator import CustomOperator

GROUP: Final = "tilefarm.plugins"

_known: dict[tuple[str, str], CustomOperator] = {}


def custom_operator_of(domain: str, name: str) -> CustomOperator | None:
    """What stands for nodes of that domain and name; None if nothing does."""
    return _known.get((domain, name))


def load_plugin(named: str) -> tuple[CustomOperator, ...]:
    """The operators of a Python file, or of an entry point by its name; known from now on.

    Raises:
        SettingsError: it cannot be loaded, declares nothing, or two declare the same operator.
    """
    module = _of_file(Path(named)) if named.endswith(".py") else _of_entry_point(named)
    found = tuple(each for each in vars(module).values() if isinstance(each, CustomOperator))
    if not found:
        raise SettingsError(
            f"--plugin: {named} declares no operator",
            "@custom_operator(domain, name) above a script",
        )
    for operator in found:
        key = operator.domain, operator.name
        other = _known.get(key)
        if other is not None and other.text != operator.text:
            raise SettingsError(
                f"--plugin: {named} declares {operator.label}, which another plugin has",
                "one operator for each domain and name",
            )
        _known[key] = operator
    return found


def forget_plugins() -> None:
    """Nothing is known any more."""
    _known.clear()


def _of_file(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tilefarm_plugin_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SettingsError(f"--plugin: there is no file {file}", "name a .py file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except TilefarmError as error:
        raise SettingsError(f"--plugin: {file}: {error.what}", error.hint) from None
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"--plugin: {file} cannot be loaded: {why}", f"`python {file}` shows where it fails"
        ) from None
    return module


def _of_entry_point(name: str) -> ModuleType:
    points = {point.name: point for point in metadata.entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none is installed"
        raise SettingsError(
            f"--plugin: no package brings {name}", f"a .py file, or one of: {known}"
        )
    try:
        module = points[name].load()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"--plugin: {name} cannot be loaded: {why}", "see that its package is whole"
        ) from None
    if not isinstance(module, ModuleType):
        raise SettingsError(f"--plugin: {name} is no module", "an entry point that names a module")
    return module
