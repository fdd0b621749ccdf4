"""Records from JSON that people may have written: whatever is wrong is told with its place."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from tilefarm.documents import decoded
from tilefarm.errors import UserError

Record = TypeVar("Record")

_MOST_ITEMS: Final = 200_000
"""No plan of a problem that is taken has as many; more would only keep people waiting."""
_REMEDY: Final = "`tilefarm plan --help` shows such a document"


def record_of(kind: type[Record], text: str | bytes, *, schema: int, oldest: int) -> Record:
    """The record of a document with a schema version, or with an older one that is still read: what
    that does not know yet is as in a record that lacks it.

    Raises:
        UserError: it is not JSON, of another schema, or not such a record.
    """
    try:
        document = decoded(text)
    except ValueError as error:
        raise UserError(f"not JSON: {error}", _REMEDY) from None
    name = kind.__name__.lower()
    if not isinstance(document, dict):
        raise UserError(f"a {name} is a JSON object, not {_shown(document)}", _REMEDY)
    found = document.pop("schema", None)
    if type(found) is not int or not oldest <= found <= schema:
        raise UserError(
            f"a {name} of schema {_shown(found)}; this tilefarm reads {oldest} to {schema}",
            f'"schema": {schema} in a {name} that is written as `tilefarm plan --help` says',
        )
    made = _value(kind, document, name)
    assert isinstance(made, kind)
    return made


@cache
def _kinds(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


def _record(kind: type[Any], value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise UserError(f"{place}: an object is wanted, not {_shown(value)}", _REMEDY)
    kinds: dict[str, Any] = _kinds(kind)  # type: ignore[arg-type]
    known = [field.name for field in fields(kind)]
    for key in value:
        if key not in known:
            raise UserError(f"{place} has no {key!r}", f"one of {', '.join(known)}")
    for field in fields(kind):
        if field.name not in value and field.default is MISSING:
            raise UserError(f"{place} lacks {field.name!r}", _REMEDY)
    return kind(**{key: _value(kinds[key], each, f"{place}.{key}") for key, each in value.items()})


def _value(kind: Any, value: Any, place: str) -> Any:
    if get_origin(kind) is UnionType:
        if value is None and NoneType in get_args(kind):
            return None
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        return _items(get_args(kind), value, place)
    if is_dataclass(kind):
        return _record(kind, value, place)  # type: ignore[arg-type]
    if issubclass(kind, StrEnum):
        if value not in list(kind):
            raise UserError(f"{place}: {_shown(value)} is none of {', '.join(kind)}", _REMEDY)
        return kind(value)
    if type(value) is not kind:
        raise UserError(f"{place}: {_WORDS[kind]} is wanted, not {_shown(value)}", _REMEDY)
    return value


def _items(kinds: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise UserError(f"{place}: a list is wanted, not {_shown(value)}", _REMEDY)
    if len(value) > _MOST_ITEMS:
        raise UserError(f"{place}: {len(value)} rows, {_MOST_ITEMS} at most", "a smaller document")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    elif len(kinds) != len(value):
        raise UserError(f"{place}: {len(kinds)} values are wanted, not {len(value)}", _REMEDY)
    pairs = zip(kinds, value, strict=True)
    return tuple(_value(kind, each, f"{place}[{at}]") for at, (kind, each) in enumerate(pairs))


_WORDS = {str: "a text", int: "a whole number", bool: "true or false", float: "a number"}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
