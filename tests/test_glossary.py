"""Names are words that a stranger knows, or that the glossary explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("compile_worker", "device_server", "driver", "proto", "tuner")
GLOSSARY: Final = "proto/GLOSSARY.md"
PLAIN_WORDS: Final = "tests/plain_words.txt"

_WORD: Final = re.compile(r"[A-Z]+(?![a-z0-9])|[A-Z]?[a-z0-9]+")
_PYTHON_CLASS: Final = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)
_C_CLASS: Final = re.compile(r"^(?:class|struct|enum class|enum|union) ([A-Z]\w*)", re.MULTILINE)
_ROW: Final = re.compile(r"^\| ((?:`\w+` ?)+)\| .+ \| `(.+)` \|$", re.MULTILINE)


def words_of(name: str) -> list[str]:
    """The words of a name in snake or camel case, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


@cache
def names() -> tuple[tuple[str, str], ...]:
    """The names of this tree."""
    return tuple(_names())


def _names() -> Iterator[tuple[str, str]]:
    """Names of folders, modules and public classes, each with where it stands."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            where = path.relative_to(ROOT)
            if path.suffix not in {".c", ".cc", ".h", ".py"} or "_pb2" in path.name:
                continue
            if "tests" in where.parts:
                continue
            for folder in (*where.parents,)[:-1]:
                yield folder.name, f"{folder}/"
            yield path.stem.strip("_"), str(where)
            for name in _classes(path):
                yield name, f"{where}: {name}"


def _classes(path: Path) -> list[str]:
    if path.suffix == ".py":
        return _PYTHON_CLASS.findall(path.read_text())
    return _C_CLASS.findall(path.read_text()) if path.suffix == ".h" else []


def used_words(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Every word of these names, with the first place where it stands."""
    places = defaultdict[str, list[str]](list)
    for name, place in found:
        for word in words_of(name):
            places[word].append(place)
    return {word: min(known, key=len) for word, known in places.items()}


def glossary() -> dict[str, str]:
    """The words that the glossary explains, with where it says that they are at home."""
    rows = _ROW.findall((ROOT / GLOSSARY).read_text())
    return {word: home for words, home in rows for word in re.findall(r"\w+", words)}


def plain_words() -> list[str]:
    lines = (ROOT / PLAIN_WORDS).read_text().splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


def unexplained(used: dict[str, str], known: Iterable[str]) -> list[str]:
    """A complaint for each word that nobody knows."""
    return [
        f"{word!r} in the name {used[word]}: not plain English, and not in the glossary"
        f"\n  try: a name in the field's words, or a row in {GLOSSARY};"
        f" if every engineer knows the word, add it to {PLAIN_WORDS}"
        for word in sorted(used.keys() - set(known))
    ]


def test_every_word_of_a_name_is_known() -> None:
    found = unexplained(used_words(names()), [*glossary(), *plain_words()])
    assert not found, "\n".join(found)


def test_no_word_is_kept_that_no_name_has() -> None:
    used = used_words(names())
    found = [
        f"{word!r} is in {file}, and no name has it any more\n  try: take it out"
        for file, known in ((GLOSSARY, glossary()), (PLAIN_WORDS, plain_words()))
        for word in known
        if word not in used
    ]
    assert not found, "\n".join(found)


def test_each_word_stands_in_one_list_once() -> None:
    table = (ROOT / GLOSSARY).read_text()
    rows = [word for words, _ in _ROW.findall(table) for word in re.findall(r"\w+", words)]
    assert len(rows) == len(set(rows))
    assert plain_words() == sorted(set(plain_words()) - set(rows))
    # a row that does not parse would explain nothing
    assert len(_ROW.findall(table)) == len(re.findall(r"^\| `", table, re.MULTILINE))


def test_the_glossary_says_where_things_are() -> None:
    missing = {word: home for word, home in glossary().items() if not (ROOT / home).exists()}
    assert not missing


def test_a_new_word_is_reported_with_what_to_try() -> None:
    used = used_words([("door_frobnicator", "driver/door_frobnicator.py"), ("HTTPGrob2d", "x.py")])
    assert [*used] == ["door", "frobnicator", "http", "grob2d"]
    complaints = unexplained(used, ["door", "http"])
    assert len(complaints) == 2
    assert "'frobnicator' in the name driver/door_frobnicator.py" in complaints[0]
    assert all("\n  try: " in complaint for complaint in complaints)
