"""What the vector unit of a host's processor can do, by the processor's name and features.

A name that is in no table counts as its architecture's baseline, and features add to the name or
take away: "+avx512vnni", "-dotprod".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """One vector unit.

    Attributes:
        dot: the instruction that adds products of int8 pairs or quads to int32, see
            `codegen.dots`; "" where there is none.
        pair: the instruction that adds products of two int16 in each lane; "" where there is none.
        matrix: the instruction that multiplies two rows of eight bytes by two, see
            `codegen.matrix_products`; "" where there is none.
        lanes: int32 lanes of one register.
        registers: vectors that it holds.
        pixels: accumulators of sixteen lanes that stay in registers, next to what feeds them.
        exact_floats: vectors round as IEEE says; 32-bit NEON takes denormals for zero.
        has_byte_tables: one instruction looks up 64 bytes, see `codegen.byte_tables`.
    """

    dot: str
    lanes: int
    registers: int
    pixels: int
    exact_floats: bool = True
    pair: str = ""
    matrix: str = ""
    has_byte_tables: bool = False

    @property
    def together(self) -> int:
        """Products of a lane for which weights of int8 are best packed side by side."""
        return 2 if self.pair and self.dot == self.pair else 4

    @property
    def depth(self) -> int:
        """As `together`, of the weights of convolutions: what a product of matrices sums."""
        return _DEPTH if self.matrix else self.together

    @property
    def data(self) -> DType | None:
        """The type of data that `dot` multiplies with int8; None where either does."""
        return _DATA.get(self.dot.rstrip("0123456789"))


_DEPTH: Final = 8
"""Products of a sum of an instruction that multiplies matrices."""

_DATA: Final = {"vpdpbusd": DType.UINT8, "sdot": DType.INT8}
"""Of instructions that take one type alone."""


SSE2: Final = Isa(dot="pmaddwd128", pair="pmaddwd128", lanes=4, registers=16, pixels=2)
AVX2: Final = Isa(dot="pmaddwd256", pair="pmaddwd256", lanes=8, registers=16, pixels=4)
AVX_VNNI: Final = Isa(dot="vpdpbusd256", pair="pmaddwd256", lanes=8, registers=16, pixels=5)
AVX512: Final = Isa(dot="pmaddwd512", pair="pmaddwd512", lanes=16, registers=32, pixels=14)
AVX512_VNNI: Final = replace(AVX512, dot="vpdpbusd512")
NEON: Final = Isa(dot="saddlp", lanes=4, registers=32, pixels=4)
NEON_DOT: Final = Isa(dot="sdot", lanes=4, registers=32, pixels=4)
NEON_MIXED: Final = replace(NEON_DOT, dot="usdot", matrix="usmmla")
NEON32: Final = Isa(dot="vpaddl", lanes=4, registers=16, pixels=2, exact_floats=False)
SCALAR: Final = Isa(dot="", lanes=1, registers=1, pixels=1, exact_floats=False)

_CLIENTS: Final = """alderlake raptorlake meteorlake gracemont sierraforest grandridge arrowlake
    arrowlake-s lunarlake pantherlake clearwaterforest"""
_SERVERS: Final = """cascadelake cooperlake icelake-client icelake-server rocketlake tigerlake
    sapphirerapids emeraldrapids graniterapids graniterapids-d diamondrapids znver4 znver5"""
_WITH_VBMI: Final = f"cannonlake {_SERVERS.replace('cascadelake cooperlake', '')}"
_WITH_I8MM: Final = """cortex-a510 cortex-a520 cortex-a710 cortex-a715 cortex-a720 cortex-x2
    cortex-x3 cortex-x4 neoverse-n2 neoverse-v1 neoverse-v2 apple-m2 apple-m3 apple-m4 ampere1
    ampere1a ampere1b"""

_PROCESSORS: Final[Mapping[str, str]] = {
    "avx2": f"x86-64-v3 haswell broadwell skylake znver1 znver2 znver3 {_CLIENTS}",
    "avxvnni": _CLIENTS,
    "avx512bw": f"x86-64-v4 skylake-avx512 cannonlake {_SERVERS}",
    "avx512vnni": _SERVERS,
    "avx512vbmi": _WITH_VBMI,
    "dotprod": f"""cortex-a55 cortex-a65 cortex-a75 cortex-a76 cortex-a76ae cortex-a77 cortex-a78
        cortex-a78ae cortex-a78c cortex-x1 neoverse-n1 neoverse-e1 apple-m1 {_WITH_I8MM}""",
    "i8mm": _WITH_I8MM,
    "neon": """cortex-a7 cortex-a8 cortex-a9 cortex-a12 cortex-a15 cortex-a17 cortex-a32 cortex-a35
        cortex-a53 cortex-a57 cortex-a72 cortex-a73""",
}
"""Processors that have a feature, by LLVM's names."""


@lru_cache(maxsize=32)
def isa_of(host: Host) -> Isa:
    """The best vector unit that the host is said to have."""
    if host.triple.startswith("x86_64"):
        return _x86(host)
    if host.triple.startswith("aarch64"):
        if not _has(host, "dotprod"):
            return NEON
        return NEON_MIXED if _has(host, "i8mm") else NEON_DOT
    if host.triple.startswith("arm"):
        return NEON32 if _has(host, "neon") else SCALAR
    return SCALAR


def _x86(host: Host) -> Isa:
    if _has(host, "avx512bw"):
        isa = AVX512_VNNI if _has(host, "avx512vnni") else AVX512
        return replace(isa, has_byte_tables=_has(host, "avx512vbmi"))
    if _has(host, "avx2"):
        return AVX_VNNI if _has(host, "avxvnni") else AVX2
    return SSE2


def _has(host: Host, feature: str) -> bool:
    """Whether the features say so, or else the name."""
    said = [each for each in host.features.split(",") if each[1:] == feature]
    return said[-1][0] == "+" if said else host.cpu in _PROCESSORS[feature].split()
