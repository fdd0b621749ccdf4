"""Nodes are values: frozen, slotted and interned, so equal nodes are the same object.

Identity comparison and hashing take constant time whatever the depth, rewriting can tell "nothing
changed" by `is`, and pickling keeps all of it. IR is built by one thread of a process at a time.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform
from weakref import WeakValueDictionary

_T = TypeVar("_T", bound="type[Node]")


class Node:
    """Anything that the IR is made of. Subclasses are declared with `@node`."""

    __slots__ = ("__weakref__",)
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _interned: ClassVar[WeakValueDictionary[object, Node]] = WeakValueDictionary()

    def __new__(cls, *args: Any, **named: Any) -> Any:
        if named or len(args) < len(cls.__match_args__):
            args = _complete(cls, args, named)
        key = cls._key(args)
        found = Node._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            Node._interned[key] = found
        return found

    @classmethod
    def _key(cls, args: tuple[Any, ...]) -> object:
        return (cls, args)

    def __reduce__(self) -> tuple[type[Node], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def _complete(cls: type[Node], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments for every field, from keywords and defaults."""
    if not cls.__match_args__:
        return args
    values = list(args)
    for f in fields(cast(Any, cls))[len(args) :]:
        value = named.get(f.name, f.default)
        if value is MISSING:
            raise TypeError(f"{cls.__name__} needs {f.name}")
        values.append(value)
    return tuple(values)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: _T) -> _T:
    """Declare a node class: a frozen, slotted dataclass whose equality is identity."""
    return cast(_T, dataclass(frozen=True, slots=True, eq=False)(cls))
