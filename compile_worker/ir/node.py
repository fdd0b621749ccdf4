"""Nodes are values: frozen, slotted and interned, so equal nodes are the same object.

Identity comparison and hashing take constant time whatever the depth, rewriting can tell "nothing
changed" by `is`, and pickling keeps all of it. IR is built by one thread of a process at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Final, Self, TypeVar, cast, dataclass_transform
from weakref import ref

from tilefarm.plural import plural

_T = TypeVar("_T", bound="type[Node]")


class _Reference(ref["Node"]):
    """A weak reference that knows under which key its node is interned."""

    __slots__ = ("key",)
    key: object


_INTERNED: Final[dict[object, _Reference]] = {}
"""Every node alive. A plain dictionary of references: WeakValueDictionary costs twice the time."""


_PLAIN: Final = frozenset(
    {
        *("bool", "int", "str", "int | float", "int | None"),
        *("DType", "LoopKind", "Module", "tuple[int, ...]", "tuple[Mark, ...]"),
    }
)
"""Types of fields that hold no nodes to walk or rewrite."""


def _forget(gone: _Reference) -> None:
    """Drops a dead node's entry, unless an equal node has taken its place already."""
    if _INTERNED.get(gone.key) is gone:
        del _INTERNED[gone.key]


class Node:
    """Anything that the IR is made of. Subclasses are declared with `@node`.

    Calling a class returns the one node that has these fields. There is no `__init__`: it would
    write them again each time a node that exists already is asked for.
    """

    __slots__ = ("__weakref__", "_below", "_mentioned")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _setters: ClassVar[tuple[Callable[[Any, Any], None], ...]] = ()
    is_its_fields: ClassVar[bool] = True
    """Whether equal fields make equal nodes; if not, `_key` tells nodes apart."""
    links: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold nodes or tuples of nodes."""
    _below: tuple[Node, ...]
    _mentioned: frozenset[Node]
    """What `ir.visit` has found: the nodes directly below, and variables and buffers that occur."""

    def __new__(cls, *args: Any, **named: Any) -> Self:
        if named or len(args) != len(cls.__match_args__):
            args = _complete(cls, args, named)
        key: object = (cls, args) if cls.is_its_fields else cls._key(args)
        reference = _INTERNED.get(key)
        if reference is not None:
            found = reference()
            if found is not None:
                return cast(Self, found)
        made = object.__new__(cls)
        for put, value in zip(cls._setters, args, strict=True):
            put(made, value)
        _INTERNED[key] = reference = _Reference(made, _forget)
        reference.key = key
        return made

    @classmethod
    def _key(cls, args: tuple[Any, ...]) -> object:
        return (cls, args)

    def __reduce__(self) -> tuple[type[Node], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def _complete(cls: type[Node], args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments for every field, from keywords and defaults."""
    values = list(args)
    declared = fields(cast(Any, cls)) if cls.__match_args__ else ()
    for f in declared[len(args) :]:
        value = named.pop(f.name, f.default)
        if value is MISSING:
            raise TypeError(f"{cls.__name__} needs {f.name}")
        values.append(value)
    if named or len(values) != len(declared):
        wrong = ", ".join(named) or f"{plural(len(values), 'value')}"
        raise TypeError(f"{cls.__name__}({', '.join(cls.__match_args__)}) does not take {wrong}")
    return tuple(values)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: _T) -> _T:
    """Declare a node class: a frozen, slotted dataclass whose equality is identity."""
    made = cast(_T, dataclass(frozen=True, slots=True, eq=False, init=False)(cls))
    made._setters = tuple(vars(made)[name].__set__ for name in made.__match_args__)
    made.links = tuple(f.name for f in fields(cast(Any, made)) if f.type not in _PLAIN)
    return made
