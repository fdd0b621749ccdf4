// The matrix unit with 128-bit registers of aarch64: four sums each, one input channel a step.

#if defined(__aarch64__)

#include <arm_neon.h>

#include "matrix_path.h"

namespace tilefarm {
namespace {

constexpr uint32_t kLanes = 8;

bool always() { return true; }  // a part of every aarch64 processor
bool whole_registers(const TileShape& shape) { return shape.block % kLanes == 0; }

uint32_t inp_stride(const TileShape& shape) { return shape.batch * shape.block * 2; }
uint32_t wgt_stride(const TileShape& shape) { return shape.block * shape.block * 2; }

void pack_inp(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  for (uint32_t k = 0; k < shape.batch * shape.block; k += kLanes) {
    vst1q_s16(to + k, vmovl_s8(vld1_s8(from + k)));
  }
}

// int16[input channel][output channel]
void pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* bytes) {
  auto* to = reinterpret_cast<int16_t*>(bytes);
  for (uint32_t i = 0; i < shape.block; ++i) {
    for (uint32_t o = 0; o < shape.block; ++o) *to++ = from[o * shape.block + i];
  }
}

// Eight output channels of one row.
void add_row(uint32_t block, const int16_t* inp, const int16_t* wgt, int32_t* acc) {
  int32x4_t low = vld1q_s32(acc), high = vld1q_s32(acc + 4);
  for (uint32_t i = 0; i < block; ++i, wgt += block) {
    const int16x8_t w = vld1q_s16(wgt);
    low = vmlal_n_s16(low, vget_low_s16(w), inp[i]);
    high = vmlal_n_s16(high, vget_high_s16(w), inp[i]);
  }
  vst1q_s32(acc, low);
  vst1q_s32(acc + 4, high);
}

void run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  const uint32_t block = shape.block;
  for_each_tile(f, buffers, shape.acc_elements(), inp_stride(shape), wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  const auto* x = reinterpret_cast<const int16_t*>(inp);
                  const auto* w = reinterpret_cast<const int16_t*>(wgt);
                  for (uint32_t b = 0; b < shape.batch; ++b, x += block) {
                    for (uint32_t o = 0; o < block; o += kLanes, acc += kLanes) {
                      add_row(block, x, w + o, acc);
                    }
                  }
                });
}

}  // namespace

const MatrixPath kNeonPath = {"neon", always,   whole_registers, inp_stride, wgt_stride,
                              0,      pack_inp, pack_wgt,        run};

}  // namespace tilefarm

#endif  // __aarch64__
