"""Scripts as users write them: what the generation rules have to do with each is another thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from driver.benchmarks.script_sources import AVERAGE, CONV2D, GEMM, LARGEST, STENCIL

Shape = tuple[int, ...]

SATURATED_SUM: Final = """
def added(x, y, out):
    a = buffer(int8, x.shape[0])
    b = buffer(int8, x.shape[0])
    for i in range(x.shape[0]):
        a[i] = int8(min(max(round_even(x[i] * 50.0), -127.0), 127.0))
    for i in range(x.shape[0]):
        b[i] = int8(min(max(round_even(y[i] * 50.0), -127.0), 127.0))
    for i in range(x.shape[0]):
        out[i] = float32(int8(min(max(int32(a[i]) + int32(b[i]), -128), 127)))
"""
"""Of two vectors in bytes of 1/50: what an intrinsic of LLVM computes."""


def script_of(text: str, out: Shape, /, **inputs: Shape) -> Workload:
    """The workload of a script's text on float32 tensors of these shapes; its `scale` is 12.5."""
    specs = tuple(TensorSpec(name, shape, DType.FLOAT32) for name, shape in inputs.items())
    numbers = (("number_scale", 12.5),) if "scale" in text else ()
    made = (TensorSpec("out", out, DType.FLOAT32),)
    return Workload("script", specs, made, (("source", text), *numbers))


def dot_of(rows: int, columns: int, over: int, data: DType = DType.INT8) -> Workload:
    """A product of matrices of 8 bits, the second with its rows side by side."""
    specs = (
        TensorSpec("a", (rows, over), data),
        TensorSpec("b", (columns, over), DType.INT8),
    )
    out = TensorSpec("out", (rows, columns), DType.INT32)
    return Workload("script", specs, (out,), (("source", DOT),))


DOT: Final = """
def dot(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += int32(a[i, k]) * int32(b[j, k])
"""
QUANTIZED: Final = """
def quantized(a, w, out, *, scale):
    bytes = buffer(int8, a.shape[0], a.shape[1])
    rows = buffer(int8, w.shape[0], w.shape[1])
    sums = buffer(int32, out.shape[0], out.shape[1])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            bytes[i, k] = int8(min(max(round_even(a[i, k] * scale), -127.0), 127.0))
    for j in range(w.shape[0]):
        for k in range(w.shape[1]):
            rows[j, k] = int8(w[j, k])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            sums[i, j] = 0
            for k in range(a.shape[1]):
                sums[i, j] += int32(bytes[i, k]) * int32(rows[j, k])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = float32(sums[i, j]) / scale
"""
SOFTMAX: Final = """
def rows(x, out):
    top = buffer(float32, x.shape[0], x.shape[1])
    power = buffer(float32, x.shape[0], x.shape[1], x.shape[2])
    whole = buffer(float32, x.shape[0], x.shape[1])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            top[n, c] = float32(-1e30)
            for i in range(x.shape[2]):
                top[n, c] = max(top[n, c], x[n, c, i])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                power[n, c, i] = exp(x[n, c, i] - top[n, c])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            whole[n, c] = 0
            for i in range(x.shape[2]):
                whole[n, c] += power[n, c, i]
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                out[n, c, i] = power[n, c, i] / whole[n, c]
"""
ONLINE_SOFTMAX: Final = """
def online(x, out):
    for i in range(x.shape[0]):
        top = float32(-1e30)
        total = float32(0)
        for k in range(x.shape[1]):
            higher = max(top, x[i, k])
            total = total * exp(top - higher) + exp(x[i, k] - higher)
            top = higher + float32(0)
        for k in range(x.shape[1]):
            out[i, k] = exp(x[i, k] - top) / total
"""
ROWS_AT_ONCE: Final = """
def rows(x, gain, out):
    for i in range(x.shape[0]):
        total = float32(0)
        for k in range(x.shape[1]):
            total += x[i, k]
        mean = total / 33.0
        square = float32(0)
        for k in range(x.shape[1]):
            square += (x[i, k] - mean) * (x[i, k] - mean)
        for k in range(x.shape[1]):
            out[i, k] = (x[i, k] - mean) / sqrt(square / 33.0 + 0.001) * gain[k]
"""
MEANS: Final = """
def means(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[i, j] = 0
            for k in range(x.shape[1]):
                out[i, j] += x[i, k] * x[j, k]
            out[i, j] = out[i, j] / 21.0
"""
CAUSAL: Final = """
def causal(q, v, out):
    for i in range(q.shape[0]):
        s = buffer(float32, q.shape[0])
        for j in range(q.shape[0]):
            s[j] = 0
            for d in range(q.shape[1]):
                s[j] += q[i, d] * q[j, d]
        top = float32(-1e30)
        for j in range(q.shape[0]):
            if j <= i:
                top = max(top, s[j])
        whole = 0.0
        for j in range(q.shape[0]):
            if j <= i:
                s[j] = exp(s[j] - top)
                whole += s[j]
            else:
                s[j] = 0
        for e in range(v.shape[1]):
            out[i, e] = 0
            for j in range(q.shape[0]):
                if j <= i:
                    out[i, e] += s[j] / whole * v[j, e]
"""
ROW_BY_ROW: Final = """
def rows(x, out):
    for i in range(x.shape[0]):
        top = x[i, 0] + 0.0
        for k in range(x.shape[1]):
            top = max(top, x[i, k])
        total = 0.0
        for k in range(x.shape[1]):
            out[i, k] = exp(x[i, k] - top)
            total += out[i, k]
        for k in range(x.shape[1]):
            out[i, k] = out[i, k] / total
"""
SHIFTED: Final = """
def shifted(a, b, out):
    for d in range(9):
        for y in range(a.shape[1]):
            for x in range(a.shape[2]):
                out[d, y, x] = 0
                for c in range(a.shape[0]):
                    if (
                        y + d // 3 - 1 >= 0 and y + d // 3 - 1 < a.shape[1]
                        and x + d % 3 - 1 >= 0 and x + d % 3 - 1 < a.shape[2]
                    ):
                        out[d, y, x] += a[c, y, x] * b[c, y + d // 3 - 1, x + d % 3 - 1]
"""
BRANCHES: Final = """
def branches(x, slope, out):
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[i, k] > 0.0:
                out[i, k] = x[i, k]
            elif x[i, k] > -1.0:
                out[i, k] = slope[k] * x[i, k]
            else:
                out[i, k] = -slope[k]
"""
MOMENTS: Final = """
def moments(x, out):
    for i in range(x.shape[0]):
        out[i, 0] = 0
        out[i, 1] = 0
        for k in range(x.shape[1]):
            out[i, 0] += x[i, k]
            out[i, 1] += x[i, k] * x[i, k]
"""
SMOOTH: Final = """
def smooth(x, k, out):
    for n in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[n, c, i] = 0
                for t in range(k.shape[0]):
                    out[n, c, i] += x[n, c, i + t] * k[t]
"""
CHAIN: Final = """
def normalized(x, out):
    s = buffer(float32, x.shape[0])
    m = buffer(float32, x.shape[0])
    d = buffer(float32, x.shape[0], x.shape[1])
    v = buffer(float32, x.shape[0])
    for i in range(x.shape[0]):
        s[i] = 0
        for k in range(x.shape[1]):
            s[i] += x[i, k]
    for i in range(x.shape[0]):
        m[i] = s[i] / 33.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            d[i, k] = x[i, k] - m[i]
    for i in range(x.shape[0]):
        v[i] = 0
        for k in range(x.shape[1]):
            v[i] += d[i, k] * d[i, k]
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = d[i, k] / sqrt(v[i] + 0.001)
"""
POOL: Final = """
def pool(x, out):
    for c in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[c, i, j] = float32(-1e30)
                for r in range(3):
                    for s in range(3):
                        out[c, i, j] = max(out[c, i, j], x[c, 2 * i + r, 2 * j + s])
"""
STARTED: Final = """
def started(x, out):
    top = buffer(float32, x.shape[0])
    for i in range(x.shape[0]):
        top[i] = 1.0
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            top[i] = max(top[i], x[i, k])
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = x[i, k] / top[i]
"""
GATHER: Final = """
def gather(x, index, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[min(max(int64(index[i]), 0), 7), j]
"""
RECURRENCE: Final = """
def running(x, out):
    for i in range(out.shape[0]):
        out[i, 0] = x[i, 0]
        for j in range(out.shape[1] - 1):
            out[i, j + 1] = out[i, j] * 0.5 + x[i, j + 1]
"""
EDGES: Final = """
def edges(x, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i, j] - (x[i, j - 1] if j > 0 else 0.0)
"""
TURNED: Final = """
def turned(x, out):
    for i in range(out.shape[1]):
        for j in range(out.shape[0]):
            out[j, i] = tanh(x[i, j])
"""

SCRIPTS: Final[Mapping[str, Workload]] = {
    "gemm": script_of(GEMM, (10, 48), a=(10, 21), b=(21, 48)),
    "gemm, operands larger than a cache": script_of(GEMM, (96, 96), a=(96, 96), b=(96, 96)),
    "gemm of primes": script_of(GEMM, (13, 17), a=(13, 7), b=(7, 17)),
    "softmax": script_of(SOFTMAX, (2, 6, 50), x=(2, 6, 50)),
    "softmax of long rows": script_of(SOFTMAX, (1, 2, 20000), x=(1, 2, 20000)),
    "stencil": script_of(STENCIL, (22, 30), x=(24, 32)),
    "smooth": script_of(SMOOTH, (2, 3, 45), x=(2, 3, 49), k=(5,)),
    "convolution": script_of(CONV2D, (8, 10, 14), x=(4, 10, 14), w=(8, 4, 3, 3)),
    "stages one after the other": script_of(CHAIN, (9, 33), x=(9, 33)),
    "strided windows": script_of(POOL, (5, 7, 9), x=(5, 15, 19)),
    "a start of its own": script_of(STARTED, (9, 33), x=(9, 33)),
    "elements from anywhere": script_of(GATHER, (6, 20), x=(8, 20), index=(6,)),
    "edges": script_of(EDGES, (9, 40), x=(9, 40)),
    "turned": script_of(TURNED, (24, 20), x=(20, 24)),
    "rows, one after the other": script_of(ROWS_AT_ONCE, (9, 33), x=(9, 33), gain=(33,)),
    "rows with a condition": script_of(CAUSAL, (12, 18), q=(12, 8), v=(12, 18)),
    "rows in their output": script_of(ROW_BY_ROW, (9, 33), x=(9, 33)),
    "rows in their output, long": script_of(ROW_BY_ROW, (20, 1500), x=(20, 1500)),
    "means of products": script_of(MEANS, (13, 13), x=(13, 21)),
    "sums with a condition": script_of(SHIFTED, (9, 6, 10), a=(4, 6, 10), b=(4, 6, 10)),
    "branches": script_of(BRANCHES, (9, 33), x=(9, 33), slope=(33,)),
    "dot of what it rounds itself": script_of(QUANTIZED, (10, 48), a=(10, 32), w=(48, 32)),
    "dot": dot_of(12, 48, 64),
    "dot of unsigned data": dot_of(7, 33, 20, DType.UINT8),
}
"""By what they are; all can be tiled."""

STATES: Final = """
def states(x, g, out):
    for c in range(x.shape[1]):
        h = 0.0
        n = 0.0
        for t in range(x.shape[0]):
            if g[t, c] > 1.0:
                h = 0.0
            h = h * 0.5 + x[t, c]
            n = n * 0.5 + abs(g[t, c])
            out[t, c] = h / (n + 1.0)
"""
TWO_NESTS: Final = """
def sums(x, out):
    for c in range(x.shape[1]):
        out[0, c] = x[0, c]
    for t in range(x.shape[0] - 1):
        for c in range(x.shape[1]):
            out[t + 1, c] = out[t, c] + x[t + 1, c]
"""
RANGES: Final = """
def ranges(x, out):
    for i in range(x.shape[0]):
        low = x[i, 0] + 0.0
        high = x[i, 0] + 0.0
        for k in range(x.shape[1]):
            low = min(low, x[i, k])
            high = max(high, x[i, k])
        out[i, 0] = low
        out[i, 1] = high
"""
RESETS: Final = """
def resets(x, r, out):
    for b in range(x.shape[0]):
        for c in range(x.shape[2]):
            s = 0.0
            for t in range(x.shape[1]):
                if r[t] > 0.0:
                    s = 0.0
                    for k in range(2):
                        s += x[b, t, c]
                else:
                    s += x[b, t, c]
                out[b, t, c] = s
"""
LATE: Final = """
def late(x, w, out):
    p = buffer(float32, x.shape[0], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            p[i, j] = 0.0
            for k in range(x.shape[1]):
                p[i, j] += x[i, k] * w[k, j]
    for j in range(w.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s = s * 0.5 + p[i, j]
            out[i, j] = s
"""
DISTANCE: Final = """
def distance(x, y, out):
    for b in range(x.shape[0]):
        d = buffer(float32, y.shape[1] + 1)
        for j in range(y.shape[1] + 1):
            d[j] = float32(j)
        for i in range(x.shape[1]):
            last = float32(i)
            d[0] = float32(i + 1)
            for j in range(y.shape[1]):
                cost = 1.0
                if x[b, i] > y[b, j]:
                    cost = 0.0
                best = min(min(d[j + 1], d[j]) + 1.0, last + cost)
                last = d[j + 1] + 0.0
                d[j + 1] = best
        out[b] = d[y.shape[1]]
"""
HISTOGRAM: Final = """
def histogram(x, out):
    for k in range(out.shape[0]):
        out[k] = 0.0
    for i in range(x.shape[0]):
        out[min(max(int64(x[i]), 0), 7)] += 1.0
"""

STATE_SPACE: Final = """
def state_space(x, out):
    for c in range(x.shape[1]):
        h = buffer(float32, 4)
        for s in range(4):
            h[s] = 0.0
        for t in range(x.shape[0]):
            y = 0.0
            for s in range(4):
                h[s] = h[s] * 0.5 + x[t, c] * float32(s)
                y += h[s]
            out[t, c] = y
"""
"""Each channel has a buffer of states, of which every one is needed at every step."""

IN_LOCKSTEP: Final[Mapping[str, Workload]] = {
    "rows with two states": script_of(ONLINE_SOFTMAX, (4, 33), x=(4, 33)),
    "recurrence": script_of(RECURRENCE, (9, 21), x=(9, 21)),
    "moments": script_of(MOMENTS, (23, 2), x=(23, 9)),
    "average": script_of(AVERAGE, (11, 75), x=(11, 75)),
    "place of the largest": script_of(LARGEST, (21,), x=(21, 30)),
    "states": script_of(STATES, (9, 37), x=(9, 37), g=(9, 37)),
    "two nests": script_of(TWO_NESTS, (9, 37), x=(9, 37)),
    "ranges": script_of(RANGES, (19, 2), x=(19, 33)),
    "resets": script_of(RESETS, (3, 7, 21), x=(3, 7, 21), r=(7,)),
    "buffers of states": script_of(STATE_SPACE, (9, 37), x=(9, 37)),
    "distance of rows": script_of(DISTANCE, (13,), x=(13, 5), y=(13, 7)),
    "after a product": script_of(LATE, (9, 37), x=(9, 8), w=(8, 37)),
}
"""What goes on along an axis, or comes several at a time: nothing of these can be tiled."""
