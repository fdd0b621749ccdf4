"""Walking and rewriting: written once for every node, by its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import TypeVar, cast

from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.ir.node import Node

_N = TypeVar("_N", bound=Node)


def children(node: Node) -> Iterator[Node]:
    """Nodes directly below, in field order."""
    for name in node.links:
        value = getattr(node, name)
        if type(value) is tuple:
            yield from value
        elif value is not None:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first. A shared node comes once per occurrence."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(list(children(top))))


def find(node: Node, kind: type[_N]) -> Iterator[_N]:
    """Every node of one kind at or below `node`."""
    return (n for n in walk(node) if isinstance(n, kind))


def map_children(node: _N, change: Callable[[Node], Node]) -> _N:
    """`node` with every direct child replaced by `change(child)`; itself if none changed."""
    changes: dict[str, object] = {}
    for name in node.links:
        old = getattr(node, name)
        if type(old) is tuple:
            items = tuple([change(item) for item in old])
            if not all(map(is_, items, old)):
                changes[name] = items
        elif old is not None:
            new = change(old)
            if new is not old:
                changes[name] = new
    if not changes:
        return node
    return type(node)(*[changes.get(f, getattr(node, f)) for f in node.__match_args__])


def rewrite(node: _N, rule: Callable[[Node], Node | None]) -> _N:
    """Children first, then `rule` on every node; None leaves it alone.

    A node that occurs twice is done once.
    """
    done: dict[Node, Node] = {}

    def visit(at: Node) -> Node:
        found = done.get(at)
        if found is None:
            rebuilt = map_children(at, visit)
            found = rule(rebuilt) or rebuilt
            done[at] = found
        return found

    return cast(_N, visit(node))


def substitute(node: _N, values: Mapping[Var, Expr]) -> _N:
    """`node` with loop variables replaced."""
    return rewrite(node, lambda n: values.get(n) if isinstance(n, Var) else None)


def replace_buffers(node: _N, buffers: Mapping[Buffer, Buffer]) -> _N:
    """`node` with buffers replaced by others of the same rank."""
    return rewrite(node, lambda n: buffers.get(n) if isinstance(n, Buffer) else None)


def variables(node: Node) -> frozenset[Var]:
    """Every variable that occurs in `node`."""
    return frozenset(find(node, Var))
