// The matrix unit with 512-bit dot products: sixteen sums, four input channels a step (vpdpbusd).
//
// The instruction multiplies unsigned by signed bytes, so weights are kept with 128 added, and
// every row of INP with what that adds to its sums too much: 128 times the sum of its bytes.

// This file alone is compiled for such processors, so it must not define what others could link to.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "matrix_path.h"

namespace tilefarm {
namespace {

constexpr uint32_t kLanes = 16;

bool has_vnni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vnni");
}
bool whole_registers(const TileShape& shape) { return shape.block % kLanes == 0; }

// A row of INP: its bytes, the correction, and room up to a multiple of 32 bytes.
uint32_t row_stride(uint32_t block) { return (block + 4 + 31) / 32 * 32; }
uint32_t inp_stride(const TileShape& shape) { return shape.batch * row_stride(shape.block); }
uint32_t wgt_stride(const TileShape& shape) { return shape.block * shape.block; }

void pack_inp(const TileShape& shape, const int8_t* from, uint8_t* to) {
  for (uint32_t b = 0; b < shape.batch; ++b, from += shape.block, to += row_stride(shape.block)) {
    int32_t sum = 0;
    for (uint32_t i = 0; i < shape.block; ++i) sum += from[i];
    const int32_t correction = -128 * sum;
    std::memcpy(to, from, shape.block);
    std::memcpy(to + shape.block, &correction, sizeof correction);
  }
}

// uint8[block / 4][block][4]: four input channels of every output channel side by side.
void pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* to) {
  const uint32_t block = shape.block;
  for (uint32_t o = 0; o < block; ++o, from += block) {
    for (uint32_t i = 0; i < block; i += 4) {
      uint32_t four;
      std::memcpy(&four, from + i, sizeof four);
      four ^= 0x80808080u;
      std::memcpy(to + (size_t{i} * block + 4 * o), &four, sizeof four);
    }
  }
}

inline __attribute__((always_inline)) __m512i broadcast(const uint8_t* from) {
  int32_t word;
  std::memcpy(&word, from, sizeof word);
  return _mm512_set1_epi32(word);
}

// Sixteen output channels of one row. `kBlock` is 0 where it is not known.
template <uint32_t kBlock>
inline __attribute__((always_inline)) __m512i row_sums(uint32_t any_block, const uint8_t* inp,
                                                       const uint8_t* wgt) {
  const uint32_t block = kBlock != 0 ? kBlock : any_block;
  __m512i even = broadcast(inp + block), odd = _mm512_setzero_si512();
  for (uint32_t i = 0; i < block; i += 8, wgt += size_t{block} * 8) {
    even = _mm512_dpbusd_epi32(even, _mm512_loadu_si512(wgt), broadcast(inp + i));
    odd = _mm512_dpbusd_epi32(odd, _mm512_loadu_si512(wgt + size_t{block} * 4),
                              broadcast(inp + i + 4));
  }
  return _mm512_add_epi32(even, odd);
}

template <uint32_t kBlock>
void run_blocks(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  const uint32_t block = kBlock != 0 ? kBlock : shape.block;
  for_each_tile(f, buffers, shape.acc_elements(), inp_stride(shape), wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  for (uint32_t b = 0; b < shape.batch; ++b, inp += row_stride(block)) {
                    for (uint32_t o = 0; o < block; o += kLanes, acc += kLanes) {
                      const __m512i more = row_sums<kBlock>(block, inp, wgt + size_t{o} * 4);
                      _mm512_storeu_si512(acc, _mm512_add_epi32(_mm512_loadu_si512(acc), more));
                    }
                  }
                });
}

void run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  if (shape.block == 16) return run_blocks<16>({shape.batch, 16}, f, buffers);
  run_blocks<0>(shape, f, buffers);
}

}  // namespace

const MatrixPath kAvx512VnniPath = {"avx512vnni", has_vnni, whole_registers, inp_stride, wgt_stride,
                                    0x80,         pack_inp, pack_wgt,        run};

}  // namespace tilefarm

#endif  // __x86_64__
