"""Which options of `tilefarm tune` a zoo's file may name, and what is written there for each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from tilefarm.printable import printable


class FaultError(Exception):
    """Why a key of the file cannot be taken: its name, its value, what would do."""


class OptionKind(StrEnum):
    """What an option's value is in the file."""

    TEXT = "a text"
    NUMBER = "a number"
    FILE = "a file, from the folder of this one"
    NAMES = "a list of names"
    TABLE = "a table of texts"
    """NAME=VALUE, each with the option again."""
    FLAG = "true, or left out"
    EITHER = "true or false"
    """--option or --no-option."""


MODEL_OPTIONS: Final[Mapping[str, OptionKind]] = {
    "judge": OptionKind.TEXT,
    "max-loss": OptionKind.NUMBER,
    "shape": OptionKind.TABLE,
    "plugin": OptionKind.FILE,
    "float": OptionKind.FLAG,
    "calibration": OptionKind.TEXT,
    "activations": OptionKind.TEXT,
    "equalize": OptionKind.EITHER,
    "share-shifts": OptionKind.EITHER,
    "requantize": OptionKind.TEXT,
    "correct-bias": OptionKind.EITHER,
    "fit-weights": OptionKind.EITHER,
    "keep-float": OptionKind.NAMES,
    "wide-weights": OptionKind.NAMES,
    "no-wide-weights": OptionKind.FLAG,
    "wide-activations": OptionKind.NAMES,
    "no-wide-activations": OptionKind.FLAG,
    "seed": OptionKind.NUMBER,
}
"""What a model is, and how it becomes integers."""
TARGET_OPTIONS: Final[Mapping[str, OptionKind]] = {
    "target": OptionKind.TEXT,
    "threads": OptionKind.NUMBER,
    "devices": OptionKind.NUMBER,
    "runtime": OptionKind.FILE,
    "tracker": OptionKind.TEXT,
    "token-file": OptionKind.FILE,
    "tls": OptionKind.FILE,
    "signing-key": OptionKind.FILE,
    "label": OptionKind.TABLE,
    "require-sandbox": OptionKind.TEXT,
    "priority": OptionKind.NUMBER,
    "device-wait": OptionKind.NUMBER,
    "run-timeout": OptionKind.NUMBER,
    "compile-timeout": OptionKind.NUMBER,
    "workers": OptionKind.NUMBER,
    "ray": OptionKind.TEXT,
    "ray-token": OptionKind.FILE,
    "no-ray": OptionKind.FLAG,
}
"""Where kernels are compiled and run."""
_WORDS: Final = {"target": frozenset({".json"}), "runtime": frozenset({".so"})}
"""Options that take a name or a file, which its ending tells."""


def words_of(key: str, value: object, kind: OptionKind, folder: Path) -> list[str]:
    """The words of the command line that say the same.

    Raises:
        FaultError: the value is nothing of the kind.
    """
    flag = f"--{key}"
    match kind, value:
        case OptionKind.TEXT | OptionKind.FILE, str() if value:
            is_file = kind is OptionKind.FILE and key != "runtime"
            named = Path(value).suffix in _WORDS.get(key, ())
            return [flag, str(folder / value) if is_file or named else value]
        case OptionKind.NUMBER, int() | float() if not isinstance(value, bool):
            return [flag, f"{value}"]
        case OptionKind.NAMES, list() if all(isinstance(each, str) and each for each in value):
            return [flag, ",".join(value)]
        case OptionKind.TABLE, dict() if all(isinstance(each, str) for each in value.values()):
            return [word for name, each in value.items() for word in (flag, f"{name}={each}")]
        case OptionKind.FLAG, True:
            return [flag]
        case OptionKind.EITHER, bool():
            return [flag if value else f"--no-{key}"]
    raise FaultError(f"{key} = {printable(repr(value), 80)}: not {kind.value}")
