"""What went wrong in a user's Python, in one line: the error, and the line it came through."""

from __future__ import annotations

import traceback

from tilefarm.errors import TilefarmError


def failure(error: BaseException, named: str = "") -> str:
    """`TypeError: no such thing in line 3`.

    Args:
        named: the file as its code is called; "" where no line is wanted.
    """
    said = str(error)
    if isinstance(error, SyntaxError):
        said = error.msg
    elif isinstance(error, TilefarmError):
        said = error.what
    line = _line_within(named, error) if named else None
    return " ".join(f"{type(error).__name__}: {said}{f' in line {line}' if line else ''}".split())


def _line_within(named: str, error: BaseException) -> int | None:
    """The last line of a user's file that an error came through; None if it came through none."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == named), None)
