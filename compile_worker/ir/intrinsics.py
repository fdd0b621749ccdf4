"""Intrinsics of users: what a `Call` of such a name means, and which of LLVM's it becomes.

    saturated_3f1c0a9b2d44[int8](a, b)     means     int8(min(max(int32(a) + int32(b), -128), 127))
                                           becomes   call @llvm.sadd.sat.i8(a, b), or of a vector

A name ends with digits of the file that declares it, so another version is another intrinsic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefarm.dtype import DType

from compile_worker.ir.expr import Call, Expr, Load
from compile_worker.ir.node import Node
from compile_worker.ir.visit import rewrite


@dataclass(frozen=True, slots=True)
class UserIntrinsic:
    """One of them; all operands and the result have one type.

    Attributes:
        operands: stand for them in `meaning`.
        llvm: an intrinsic that is overloaded by that type alone, without its suffix.
        literals: what it takes behind the operands, as LLVM writes it.
    """

    name: str
    operands: tuple[Load, ...]
    meaning: Expr
    llvm: str
    literals: tuple[str, ...] = ()

    @property
    def dtype(self) -> DType:
        return self.meaning.dtype

    def call(self, args: Sequence[Expr]) -> Call:
        """The intrinsic of these."""
        return Call(self.name, tuple(args), self.dtype)

    def inlined(self, args: Sequence[Expr]) -> Expr:
        """What the call of these means."""
        values = dict(zip(self.operands, args, strict=True))

        def rule(node: Node) -> Node | None:
            return values.get(node) if isinstance(node, Load) else None

        return rewrite(self.meaning, rule)

    def instruction(self, kind: str, suffix: str, args: Sequence[str]) -> str:
        """LLVM's call with these values, whose type is `kind`."""
        given = ", ".join([*(f"{kind} {each}" for each in args), *self.literals])
        return f"call {kind} @{self.llvm}.{suffix}({given})"


_of_users: dict[str, UserIntrinsic] = {}


def know_intrinsic(mine: UserIntrinsic) -> None:
    """Calls of its name can be verified, interpreted and compiled in this process."""
    _of_users[mine.name] = mine


def intrinsic_of_user(name: str) -> UserIntrinsic | None:
    """The one of that name; None if this process knows none."""
    return _of_users.get(name)
