"""Checks Ed25519 signatures (RFC 8032, section 5.1) in plain Python: boards have nothing else.

A check has no secrets, so it need not take the same time for all keys; nothing is signed here. The
first use of a key makes a table of its multiples, which makes later ones some ten times as fast.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

KEY_NBYTES: Final = 32
SIGNATURE_NBYTES: Final = 64

_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE: Final = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
"""Extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z."""

_NEUTRAL: Final[_Point] = (0, 1, 1, 0)
_REMEMBERED: Final = 16
"""Keys; a farm has few."""


def is_signature(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature is that of a message under a public key; whatever the bytes are."""
    if len(signature) != SIGNATURE_NBYTES:
        return False
    commitment, answer = signature[:KEY_NBYTES], int.from_bytes(signature[KEY_NBYTES:], "little")
    point = _decoded(public)
    if point is None or answer >= _ORDER:
        return False
    x, y, z, t = point
    challenge = _number(commitment, public, message)
    # R = S*B - k*A, compared as it is encoded: another encoding of R is another signature.
    found = _sum(_times(answer, _BASE), _times(challenge, (-x % _P, y, z, -t % _P)))
    return _encoded(found) == commitment


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % _ORDER


def _sum(p: _Point, q: _Point) -> _Point:
    """The complete addition of section 5.1.4."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    result = _NEUTRAL
    for row in _table(point):
        result = _sum(result, row[scalar & 15])
        scalar >>= 4
    return result


@lru_cache(_REMEMBERED)
def _table(point: _Point) -> tuple[tuple[_Point, ...], ...]:
    """The multiples 0..15 of a point, of 16 times it, of 256 times it and so on, 64 rows."""
    rows = []
    for _ in range(64):
        row = [_NEUTRAL]
        for _ in range(15):
            row.append(_sum(row[-1], point))
        rows.append(tuple(row))
        point = _sum(row[-1], point)
    return tuple(rows)


def _encoded(point: _Point) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(KEY_NBYTES, "little")


def _decoded(content: bytes) -> _Point | None:
    """The point of an encoding, section 5.1.3; None if there is none."""
    if len(content) != KEY_NBYTES:
        return None
    number = int.from_bytes(content, "little")
    y, odd = number & ((1 << 255) - 1), number >> 255
    if y >= _P:
        return None
    u, v = (y * y - 1) % _P, (_D * y * y + 1) % _P
    x = u * pow(v, 3, _P) * pow(u * pow(v, 7, _P), (_P - 5) // 8, _P) % _P
    if v * x * x % _P == -u % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if v * x * x % _P != u or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = _P - x
    return x, y, 1, x * y % _P


def _base() -> _Point:
    """The point whose y is 4/5 and whose x is even."""
    point = _decoded((4 * pow(5, -1, _P) % _P).to_bytes(KEY_NBYTES, "little"))
    assert point is not None
    return point


_BASE: Final = _base()
