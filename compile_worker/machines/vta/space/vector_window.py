"""One axis of a pooling window: how much of the image a tile needs, and whether it can be copied.

Only rows that are read are loaded: lowering skips the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from compile_worker.machines.vta import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorWindow:
    """Windows of `kernel` positions every `stride` over `size` positions with padding around.

    `skips` tells whether positions that nothing reads are left out.
    """

    size: int
    out: int
    kernel: int = 1
    stride: int = 1
    before: int = 0
    after: int = 0
    skips: bool = False

    @property
    def pads(self) -> bool:
        """Whether there is padding on either side."""
        return bool(self.before or self.after)

    @property
    def read(self) -> int:
        """Positions of the image that some window reads."""
        taps = product(range(self.out), range(self.kernel))
        places = {out * self.stride + tap - self.before for out, tap in taps}
        return sum(0 <= place < self.size for place in places)

    def loaded(self, tile: int, part: int) -> int:
        """Positions on the chip for `tile` outputs and `part` of the kernel."""
        return (self._span(tile, part) - 1) // self._every(tile, part) + 1

    def is_whole(self, tile: int, part: int) -> bool:
        """Whether a copy takes every position of the image: it goes on with the next image."""
        return self.loaded(tile, part) == self.size and not self.pads

    def fits(self, tile: int, part: int) -> bool:
        """Whether every copy has something to load, and paddings that its fields hold."""
        count, every = self.loaded(tile, part), self._every(tile, part)
        for first, inner in product(range(0, self.out, tile), range(0, self.kernel, part)):
            start = first * self.stride + inner - self.before
            beyond = start + (count - 1) * every - (self.size - 1)
            above, below = (max(0, -(-missing // every)) for missing in (-start, beyond))
            pads = (above, 0, below, 0)
            if limits.dma_fields_fit(count - above - below, 1, 0, pads) is not None:
                return False
        return True

    def _every(self, tile: int, part: int) -> int:
        """The distance of positions that are loaded."""
        steps = [self.stride * (tile > 1), int(part > 1)]
        return max(1, math.gcd(*steps)) if self.skips else 1

    def _span(self, tile: int, part: int) -> int:
        return (tile - 1) * self.stride + part
