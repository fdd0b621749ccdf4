"""What files declare that were named with `--plugin`, or that installed packages bring.

A package brings operators, rules and passes by an entry point of the group `tilefarm.plugins`: a
module that declares them. A process loads what it is told to, once, and never anything because a
model asks for it.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.system_errors import unreadable

from compile_worker.machines.cpu.space.script_context import ScriptRule
from compile_worker.machines.cpu.space.script_rules import set_rules_of_users
from compile_worker.plugins.operator import CustomOperator
from compile_worker.plugins.passes import UserPass, set_passes_of_users
from compile_worker.plugins.plugin import Plugin, plugin_of, require_short

GROUP: Final = "tilefarm.plugins"

_loaded: dict[str, Plugin] = {}
"""By the digest of its text."""


def custom_operator_of(domain: str, name: str) -> CustomOperator | None:
    """What stands for nodes of that domain and name; None if nothing does."""
    return _operators().get((domain, name))


def loaded_plugins() -> tuple[Plugin, ...]:
    """All of this process, in the order in which they were named."""
    return tuple(_loaded.values())


def load_plugin(named: str) -> Path:
    """What a Python file declares, or an entry point by its name, is known from now on; the file.

    Raises:
        SettingsError: it cannot be loaded, declares nothing, or what another one declares.
        DataError: the file cannot be read.
    """
    file = Path(named) if _is_file(named) else _file_of_entry_point(named)
    plugin = plugin_of(named, _text_of(file))
    for operator in plugin.operators:
        key = operator.domain, operator.name
        if plugin.digest.hex not in _loaded and key in _operators():
            raise SettingsError(
                f"--plugin: {named} declares {operator.label}, which another plugin has",
                "one operator for each domain and name",
            )
    if plugin.digest.hex not in _loaded:
        set_rules_of_users([*_rules(), *plugin.rules])
        try:
            set_passes_of_users([*_passes(), *plugin.passes])
        except SettingsError:
            set_rules_of_users(_rules())
            raise
        _loaded[plugin.digest.hex] = plugin
    return file


def forget_plugins() -> None:
    """Nothing is known any more."""
    _loaded.clear()
    set_rules_of_users(())
    set_passes_of_users(())


def _rules() -> list[ScriptRule]:
    return [rule for plugin in _loaded.values() for rule in plugin.rules]


def _passes() -> list[UserPass]:
    return [each for plugin in _loaded.values() for each in plugin.passes]


def _operators() -> dict[tuple[str, str], CustomOperator]:
    every = (operator for plugin in _loaded.values() for operator in plugin.operators)
    return {(operator.domain, operator.name): operator for operator in every}


def _is_file(named: str) -> bool:
    """Whether a path is meant, and no name of a package's."""
    return named.endswith(".py") or "/" in named or Path(named).exists()


def _text_of(file: Path) -> bytes:
    try:
        if file.is_dir():
            raise SettingsError(f"--plugin: {file} is a folder", "name a .py file")
        if not file.is_file():
            raise SettingsError(f"--plugin: there is no file {file}", "name a .py file")
        require_short(str(file), file.stat().st_size)
        return file.read_bytes()
    except OSError as error:
        raise unreadable(file, error, "name a .py file that you can read") from None


def _file_of_entry_point(name: str) -> Path:
    """That of the module which a package names; it is run by us, as any file is."""
    points = {point.name: point for point in metadata.entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none is installed"
        raise SettingsError(
            f"--plugin: no package brings {name}", f"a .py file, or one of: {known}"
        )
    if points[name].attr:
        raise SettingsError(f"--plugin: {name} is no module", "an entry point that names a module")
    try:
        spec = importlib.util.find_spec(points[name].module)
    except Exception:
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise SettingsError(
            f"--plugin: {name} cannot be loaded: there is no module {points[name].module}",
            "see that its package is whole",
        )
    return Path(spec.origin)
