// The matrix unit without anything of a particular processor: two input channels at a time over all
// output channels, and one product at a time.

#include <cstring>

#include "matrix_path.h"

namespace tilefarm {
namespace {

bool always() { return true; }
bool every_shape(const TileShape&) { return true; }

int32_t wrapped_sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// Layouts of "portable": inp int16[batch][pairs][2], wgt int16[pairs][block][2], where a pair is
// two input channels and an odd block has a zero at the end.
uint32_t pairs(const TileShape& shape) { return (shape.block + 1) / 2; }

uint32_t portable_inp_stride(const TileShape& shape) { return shape.batch * pairs(shape) * 4; }
uint32_t portable_wgt_stride(const TileShape& shape) { return pairs(shape) * shape.block * 4; }

void portable_pack_inp(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  const uint32_t width = pairs(shape) * 2;
  for (uint32_t b = 0; b < shape.batch; ++b, from += shape.block, to += width) {
    to[width - 1] = 0;
    for (uint32_t i = 0; i < shape.block; ++i) to[i] = from[i];
  }
}

void portable_pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  for (uint32_t p = 0; p < pairs(shape); ++p) {
    for (uint32_t o = 0; o < shape.block; ++o, to += 2) {
      const int8_t* row = from + o * shape.block;
      to[0] = row[2 * p];
      to[1] = 2 * p + 1 < shape.block ? row[2 * p + 1] : int8_t{0};
    }
  }
}

void portable_product(const TileShape& shape, const int16_t* inp, const int16_t* wgt,
                      int32_t* acc) {
  for (uint32_t b = 0; b < shape.batch; ++b, inp += 2 * pairs(shape), acc += shape.block) {
    const int16_t* w = wgt;
    for (uint32_t p = 0; p < pairs(shape); ++p) {
      const int32_t x0 = inp[2 * p], x1 = inp[2 * p + 1];
      for (uint32_t o = 0; o < shape.block; ++o, w += 2) {
        acc[o] = wrapped_sum(acc[o], w[0] * x0 + w[1] * x1);
      }
    }
  }
}

void portable_run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  for_each_tile(f, buffers, shape.acc_elements(), portable_inp_stride(shape),
                portable_wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  portable_product(shape, reinterpret_cast<const int16_t*>(inp),
                                   reinterpret_cast<const int16_t*>(wgt), acc);
                });
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
