"""Walking and rewriting: written once for every node, by its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import is_
from typing import Any, TypeVar, cast

from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.ir.node import Node

_N = TypeVar("_N", bound=Node)


_IN_EXPRESSIONS = (Expr, Buffer)


def children(node: Node) -> tuple[Node, ...]:
    """Nodes directly below, in field order; found once in the life of a node."""
    try:
        return node._below
    except AttributeError:
        found = tuple(_below(node))
        object.__setattr__(node, "_below", found)
        return found


def _below(node: Node) -> Iterator[Node]:
    for name in node.links:
        value = getattr(node, name)
        if type(value) is tuple:
            yield from value
        elif isinstance(value, Node):
            yield value


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first. A shared node comes once per occurrence."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if top.links:
            stack += children(top)[::-1]


def mentioned(node: Node) -> frozenset[Node]:
    """Every variable and buffer at or below `node`; found once in the life of a node."""
    if type(node) is Var or type(node) is Buffer:
        return frozenset((node,))  # not kept there: a node that knows itself would never die
    try:
        return node._mentioned
    except AttributeError:
        found = _mentioned_below(node)
        object.__setattr__(node, "_mentioned", found)
        return found


def _mentioned_below(node: Node) -> frozenset[Node]:
    """The union over the children; one child's own set where that has everything."""
    sets = [mentioned(child) for child in children(node)]
    largest = max(sets, key=len, default=frozenset())
    found = largest.union(*sets)
    return largest if len(found) == len(largest) else found


def distinct(node: Node) -> Iterator[Node]:
    """As `walk`, but a node that occurs in many places comes once."""
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        yield top
        for child in children(top)[::-1]:
            if child not in seen:
                seen.add(child)
                stack.append(child)


def reads_memory(expr: Expr) -> bool:
    """Whether an expression loads anything: nothing else in it has to do with buffers."""
    return any(type(each) is Buffer for each in mentioned(expr))


def find(node: Node, kind: type[_N]) -> Iterator[_N]:
    """Every node of one kind at or below `node`, parents first."""
    if issubclass(kind, Expr | Buffer) or issubclass(Expr, kind):
        return (n for n in walk(node) if isinstance(n, kind))
    return (n for n in _walk_over_expressions(node) if isinstance(n, kind))


def _walk_over_expressions(node: Node) -> Iterator[Node]:
    """As `walk`, without expressions: they hold nothing but one another and buffers."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        below = children(top)[::-1]
        stack += [each for each in below if not isinstance(each, _IN_EXPRESSIONS)]


def map_children(node: _N, change: Callable[[Node], Node]) -> _N:
    """`node` with every direct child replaced by `change(child)`; itself if none changed."""
    changes: dict[str, object] = {}
    for name in node.links:
        old = getattr(node, name)
        if type(old) is tuple:
            items = tuple([change(item) for item in old])
            if not all(map(is_, items, old)):
                changes[name] = items
        elif isinstance(old, Node):
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
            rebuilt = map_children(at, visit) if at.links else at
            found = rule(rebuilt) or rebuilt
            done[at] = found
        return found

    return cast(_N, visit(node))


def rewrite_statements(node: _N, rule: Callable[[Node], Node | None]) -> _N:
    """As `rewrite`, for rules that leave expressions and buffers alone: it does not look there."""
    done: dict[Node, Node] = {}

    def visit(at: Node) -> Node:
        if isinstance(at, _IN_EXPRESSIONS):
            return at
        found = done.get(at)
        if found is None:
            rebuilt = map_children(at, visit)
            found = rule(rebuilt) or rebuilt
            done[at] = found
        return found

    return cast(_N, visit(node))


def substitute(node: _N, values: Mapping[Var, Expr]) -> _N:
    """`node` with loop variables replaced."""
    return _renamed(node, values)


def replace_buffers(node: _N, buffers: Mapping[Buffer, Buffer]) -> _N:
    """`node` with buffers replaced by others of the same rank."""
    return _renamed(node, buffers)


def _renamed(node: _N, values: Mapping[Any, Node]) -> _N:
    """`node` with other variables or buffers; passes by what does not mention them."""
    done: dict[Node, Node] = {}
    known = values.keys()

    def visit(at: Node) -> Node:
        found = done.get(at)
        if found is None:
            if type(at) is Var or type(at) is Buffer:
                found = values.get(at, at)
            else:
                found = at if known.isdisjoint(mentioned(at)) else map_children(at, visit)
            done[at] = found
        return found

    return cast(_N, visit(node))


def variables(node: Node) -> frozenset[Var]:
    """Every variable that occurs in `node`."""
    return frozenset(each for each in mentioned(node) if isinstance(each, Var))


def buffers_of(node: Node) -> frozenset[Buffer]:
    """Every buffer that occurs in `node`."""
    return frozenset(each for each in mentioned(node) if isinstance(each, Buffer))
