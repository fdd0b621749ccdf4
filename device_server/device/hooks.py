"""What a board's owner lets the device server do to it: cut its power, program its bitstream.

Hooks are commands, written as lists of arguments and run without a shell:

    [power_cycle]
    command = ["/usr/local/bin/relay", "--port", "3", "cycle"]
    seconds = 30

    [bitstream]
    file = "vta_1x16x16.bit"
    command = ["/usr/local/bin/program", "{file}"]
    seconds = 120
    report = ["/usr/local/bin/programmed"]

`{file}` and `{digest}` stand for the bitstream. `report`, if there is one, prints the digest of
what the board runs; without it the server remembers what it programmed since the host has booted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.documents import read_json, read_toml
from tilefarm.errors import SettingsError

from device_server.device.bitstream import Bitstream
from device_server.device.hook import SECONDS, Hook

_MOST_SECONDS: Final = 3600.0
_KEYS: Final = {
    "power_cycle": {"command", "seconds"},
    "bitstream": {"file", "command", "seconds", "report"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of one board."""

    power_cycle: Hook | None = None
    bitstream: Bitstream | None = None


NO_HOOKS: Final = Hooks()
"""Of a simulator, or a board that is looked after by hand."""


def load_hooks(path: Path) -> Hooks:
    """The hooks of a file; paths of bitstreams are relative to it.

    Raises:
        SettingsError: the file is neither TOML nor JSON, or cannot be meant; with every reason.
    """
    try:
        document: object = read_json(path) if path.suffix == ".json" else read_toml(path)
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}", "--hooks FILE.toml") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}", "hooks are a file .toml or .json") from None
    reasons: list[str] = []
    sections = _sections(document, reasons)
    power = sections.get("power_cycle")
    bits = sections.get("bitstream")
    hooks = Hooks(
        power_cycle=_hook("power_cycle", power, "command", reasons) if power is not None else None,
        bitstream=_bitstream(path.parent, bits, reasons) if bits is not None else None,
    )
    if reasons:
        raise SettingsError(f"{path}: " + "; ".join(reasons), "see `tilefarm device --help`")
    return hooks


def _sections(document: object, reasons: list[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(document, dict):
        reasons.append("not an object")
        return {}
    reasons += [f"{name}: no such hook" for name in sorted(document.keys() - _KEYS.keys())]
    found = {name: document[name] for name in _KEYS if name in document}
    reasons += [f"{name}: not a section" for name, v in found.items() if not isinstance(v, dict)]
    sections = {name: value for name, value in found.items() if isinstance(value, dict)}
    for name, section in sections.items():
        reasons += [f"{name}.{key}: unknown key" for key in sorted(section.keys() - _KEYS[name])]
    return sections


def _bitstream(folder: Path, section: dict[str, Any], reasons: list[str]) -> Bitstream:
    file = section.get("file")
    if not isinstance(file, str):
        reasons.append("bitstream.file: missing, or not a text")
    return Bitstream(
        file=folder / str(file),
        program=_hook("bitstream", section, "command", reasons),
        report=_hook("bitstream", section, "report", reasons) if "report" in section else None,
    )


def _hook(name: str, section: dict[str, Any], key: str, reasons: list[str]) -> Hook:
    command, seconds = section.get(key), section.get("seconds", SECONDS)
    good = isinstance(command, list) and all(isinstance(word, str) for word in command)
    if not good or not command:
        reasons.append(f"{name}.{key}: not a list of arguments")
        command = [""]
    timed = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not timed or not 0 < seconds <= _MOST_SECONDS:
        reason = f"{name}.seconds: {seconds!r} is not within 0..{_MOST_SECONDS:g}"
        reasons += [reason] if reason not in reasons else []
        seconds = SECONDS
    return Hook(name=name, command=tuple(command), seconds=float(seconds))
