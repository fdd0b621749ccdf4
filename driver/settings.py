"""Bounds that every record of settings holds its numbers to."""

from __future__ import annotations

from tilefarm.command_line import MOST_SECONDS
from tilefarm.errors import SettingsError


def at_least(option: str, value: float, bound: float) -> None:
    """Nothing if the value of an option is not below its bound; SettingsError otherwise."""
    if not value >= bound:
        raise SettingsError(
            f"{option} {value:g}: must be at least {bound:g}", f"{option} {max(bound, 1):g}"
        )


def wait_from(option: str, seconds: float, least: float) -> None:
    """Nothing if one may wait for so long; SettingsError otherwise."""
    if not least <= seconds <= MOST_SECONDS:
        raise SettingsError(
            f"{option} {seconds:g}: must be from {least:g} to {MOST_SECONDS:g} seconds",
            f"{option} {max(least, 1):g}",
        )
