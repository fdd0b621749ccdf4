// The matrix unit without anything of a particular processor: one input channel at a time over some
// output channels, and one product at a time.

#include <algorithm>
#include <cstring>

#include "matrix_path.h"

namespace tilefarm {
namespace {

bool always() { return true; }
bool every_shape(const TileShape&) { return true; }

int32_t wrapped_sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// Layouts of "portable": int16, and weights with their input channels outermost.
uint32_t portable_inp_stride(const TileShape& shape) { return shape.batch * shape.block * 2; }
uint32_t portable_wgt_stride(const TileShape& shape) { return shape.block * shape.block * 2; }

void portable_pack_inp(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  std::copy(from, from + shape.acc_elements(), reinterpret_cast<int16_t*>(bytes));
}

void portable_pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  for (uint32_t i = 0; i < shape.block; ++i) {
    for (uint32_t o = 0; o < shape.block; ++o) *to++ = from[o * shape.block + i];
  }
}

// `kLanes` output channels of one row, at most 2^8 products of 14 bits each.
template <uint32_t kLanes>
void add_lanes(uint32_t block, const int16_t* inp, const int16_t* wgt, int32_t* acc) {
  int32_t sums[kLanes] = {};
  for (uint32_t i = 0; i < block; ++i, wgt += block) {
    for (uint32_t o = 0; o < kLanes; ++o) sums[o] += inp[i] * wgt[o];
  }
  for (uint32_t o = 0; o < kLanes; ++o) acc[o] = wrapped_sum(acc[o], sums[o]);
}

template <uint32_t kLanes>
void run_lanes(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  for_each_tile(f, buffers, shape.acc_elements(), portable_inp_stride(shape),
                portable_wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  const auto* x = reinterpret_cast<const int16_t*>(inp);
                  const auto* w = reinterpret_cast<const int16_t*>(wgt);
                  for (uint32_t b = 0; b < shape.batch; ++b, x += shape.block) {
                    for (uint32_t o = 0; o < shape.block; o += kLanes, acc += kLanes) {
                      add_lanes<kLanes>(shape.block, x, w + o, acc);
                    }
                  }
                });
}

void portable_run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  if (shape.block % 16 == 0) return run_lanes<16>(shape, f, buffers);
  if (shape.block % 4 == 0) return run_lanes<4>(shape, f, buffers);
  run_lanes<1>(shape, f, buffers);
}

// Layouts of "scalar": as in DRAM.
uint32_t plain_inp_stride(const TileShape& shape) { return shape.batch * shape.block; }
uint32_t plain_wgt_stride(const TileShape& shape) { return shape.block * shape.block; }

void plain_pack_inp(const TileShape& shape, const int8_t* from, uint8_t* to) {
  std::memcpy(to, from, plain_inp_stride(shape));
}

void plain_pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* to) {
  std::memcpy(to, from, plain_wgt_stride(shape));
}

#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("no-tree-vectorize,no-tree-slp-vectorize")))
#endif
void scalar_run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  for_each_tile(f, buffers, shape.acc_elements(), plain_inp_stride(shape), plain_wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  const auto* x = reinterpret_cast<const int8_t*>(inp);
                  const auto* w = reinterpret_cast<const int8_t*>(wgt);
                  for (uint32_t b = 0; b < shape.batch; ++b) {
                    for (uint32_t o = 0; o < shape.block; ++o) {
                      int32_t sum = 0;  // at most 2^8 products of 14 bits
                      for (uint32_t i = 0; i < shape.block; ++i) {
                        sum += x[b * shape.block + i] * w[o * shape.block + i];
                      }
                      int32_t& a = acc[b * shape.block + o];
                      a = wrapped_sum(a, sum);
                    }
                  }
                });
}

}  // namespace

const MatrixPath kPortablePath = {
    "portable",          always, every_shape,       portable_inp_stride,
    portable_wgt_stride, 0,      portable_pack_inp, portable_pack_wgt,
    portable_run};

const MatrixPath kScalarPath = {"scalar",         always,           every_shape,
                                plain_inp_stride, plain_wgt_stride, 0,
                                plain_pack_inp,   plain_pack_wgt,   scalar_run};

}  // namespace tilefarm
