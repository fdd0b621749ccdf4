"""System calls by name, as the headers of a compiler's processor number them."""

from __future__ import annotations

import re
import subprocess

_HEADER = "#include <asm/unistd.h>\n"
_NAME = re.compile(r"^#define __NR_([a-z_]\w*) ", re.MULTILINE)


def call_numbers(compiler: str) -> dict[str, int]:
    """Every call that the headers know; they may be older than some calls."""
    names = _NAME.findall(_preprocessed(compiler, _HEADER, "-dM"))
    numbered = _HEADER + "".join(f'"{name}" __NR_{name}\n' for name in names)
    lines = re.findall(r'^"(\w+)" (.+)$', _preprocessed(compiler, numbered), re.MULTILINE)
    return {name: _sum(words) for name, words in lines if not words.startswith("__NR")}


def _preprocessed(compiler: str, text: str, *options: str) -> str:
    command = [compiler, "-E", "-P", "-x", "c", *options, "-"]
    return subprocess.run(command, input=text, text=True, check=True, capture_output=True).stdout


def _sum(words: str) -> int:
    """A number, or a base and a number in parentheses."""
    return sum(map(int, re.findall(r"\w+", words)))
