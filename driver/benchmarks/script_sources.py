"""Scripts as users write them: products, a softmax, stencils, states along an axis, and others."""

from __future__ import annotations

from typing import Final

GEMM: Final = """
def gemm(a, b, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
"""
ROUNDED: Final = """
def rounded(a, b, out):
    bytes = buffer(int8, a.shape[0], a.shape[1])
    rows = buffer(int8, b.shape[0], b.shape[1])
    sums = buffer(int32, out.shape[0], out.shape[1])
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            bytes[i, k] = int8(min(max(round_even(a[i, k] * 32.0), -127.0), 127.0))
    for j in range(b.shape[0]):
        for k in range(b.shape[1]):
            rows[j, k] = int8(min(max(round_even(b[j, k] * 32.0), -127.0), 127.0))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            sums[i, j] = 0
            for k in range(a.shape[1]):
                sums[i, j] += int32(bytes[i, k]) * int32(rows[j, k])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = float32(sums[i, j]) / 1024.0
"""
SOFTMAX: Final = """
def softmax(x, out):
    top = buffer(float32, x.shape[0])
    power = buffer(float32, x.shape[0], x.shape[1])
    whole = buffer(float32, x.shape[0])
    for n in range(x.shape[0]):
        top[n] = float32(-1e30)
        for i in range(x.shape[1]):
            top[n] = max(top[n], x[n, i])
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            power[n, i] = exp(x[n, i] - top[n])
    for n in range(x.shape[0]):
        whole[n] = 0
        for i in range(x.shape[1]):
            whole[n] += power[n, i]
    for n in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[n, i] = power[n, i] / whole[n]
"""
SMOOTH: Final = """
def smooth(x, k, out):
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[n, i] = 0
            for t in range(k.shape[0]):
                out[n, i] += x[n, i + t] * k[t]
"""
STENCIL: Final = """
def stencil(x, out):
    twice = buffer(float32, x.shape[0], x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            twice[i, j] = x[i, j] * 2
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = twice[i, j + 1] + twice[i + 2, j] - twice[i + 1, j] * twice[i, j + 2]
"""
CONV2D: Final = """
def conv2d(x, w, out):
    padded = buffer(float32, x.shape[0], x.shape[1] + 2, x.shape[2] + 2)
    for c in range(x.shape[0]):
        for i in range(x.shape[1] + 2):
            for j in range(x.shape[2] + 2):
                inside = i > 0 and i <= x.shape[1] and j > 0 and j <= x.shape[2]
                padded[c, i, j] = x[c, i - 1, j - 1] if inside else 0.0
    for o in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[o, i, j] = 0
                for c in range(x.shape[0]):
                    for r in range(3):
                        for s in range(3):
                            out[o, i, j] += padded[c, i + r, j + s] * w[o, c, r, s]
"""
AVERAGE: Final = """
def average(x, out):
    for c in range(x.shape[1]):
        state = 0.0
        for t in range(x.shape[0]):
            state = state * 0.9 + x[t, c] * 0.1
            out[t, c] = state
"""
LARGEST: Final = """
def largest(x, out):
    for i in range(x.shape[0]):
        best = x[i, 0] + 0.0
        out[i] = 0.0
        for k in range(x.shape[1]):
            if x[i, k] > best:
                best = x[i, k] + 0.0
                out[i] = float32(k)
"""
