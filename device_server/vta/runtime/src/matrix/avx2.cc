// The matrix unit with 256-bit registers: eight sums each, two input channels a step (pmaddwd).

// This file alone is compiled for such processors, so it must not define what others could link to.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "matrix_path.h"

namespace tilefarm {
namespace {

constexpr uint32_t kLanes = 8;

bool has_avx2() { return __builtin_cpu_supports("avx2"); }
bool whole_registers(const TileShape& shape) { return shape.block % kLanes == 0; }

// The layouts are those of "portable": int16, weights with two input channels side by side.
uint32_t inp_stride(const TileShape& shape) { return shape.batch * shape.block * 2; }
uint32_t wgt_stride(const TileShape& shape) { return shape.block * shape.block * 2; }

void pack_inp(const TileShape& shape, const int8_t* from, uint8_t* to) {
  for (uint32_t k = 0; k < shape.batch * shape.block; k += kLanes) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + k));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * k), _mm_cvtepi8_epi16(bytes));
  }
}

void pack_wgt(const TileShape& shape, const int8_t* from, uint8_t* to) {
  for (uint32_t o = 0; o < shape.block; ++o, from += shape.block) {
    for (uint32_t i = 0; i < shape.block; i += kLanes) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i));
      const __m128i wide = _mm_cvtepi8_epi16(bytes);
      uint8_t* at = to + (size_t{i / 2} * shape.block + o) * 4;
      const size_t next = size_t{shape.block} * 4;
      const int32_t words[4] = {_mm_extract_epi32(wide, 0), _mm_extract_epi32(wide, 1),
                                _mm_extract_epi32(wide, 2), _mm_extract_epi32(wide, 3)};
      for (int p = 0; p < 4; ++p) std::memcpy(at + p * next, &words[p], sizeof words[p]);
    }
  }
}

inline __attribute__((always_inline)) __m256i broadcast_pair(const uint8_t* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return _mm256_set1_epi32(pair);
}

// `kRegisters` times eight output channels of one row. `kBlock` is 0 where it is not known.
template <uint32_t kBlock, uint32_t kRegisters>
inline __attribute__((always_inline)) void add_sums(uint32_t any_block, const uint8_t* inp,
                                                    const uint8_t* wgt, int32_t* acc) {
  const uint32_t block = kBlock != 0 ? kBlock : any_block;
  __m256i even[kRegisters], odd[kRegisters];
  for (uint32_t r = 0; r < kRegisters; ++r) {
    even[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(acc) + r);
    odd[r] = _mm256_setzero_si256();
  }
  for (uint32_t i = 0; i < block; i += 4, inp += 8, wgt += size_t{block} * 8) {
    const __m256i x0 = broadcast_pair(inp), x1 = broadcast_pair(inp + 4);
    const auto* w0 = reinterpret_cast<const __m256i*>(wgt);
    const auto* w1 = reinterpret_cast<const __m256i*>(wgt + size_t{block} * 4);
    for (uint32_t r = 0; r < kRegisters; ++r) {
      even[r] = _mm256_add_epi32(even[r], _mm256_madd_epi16(_mm256_loadu_si256(w0 + r), x0));
      odd[r] = _mm256_add_epi32(odd[r], _mm256_madd_epi16(_mm256_loadu_si256(w1 + r), x1));
    }
  }
  for (uint32_t r = 0; r < kRegisters; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(acc) + r, _mm256_add_epi32(even[r], odd[r]));
  }
}

template <uint32_t kBlock, uint32_t kRegisters>
void run_blocks(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  const uint32_t block = kBlock != 0 ? kBlock : shape.block;
  constexpr uint32_t kOutputs = kRegisters * kLanes;
  for_each_tile(f, buffers, shape.acc_elements(), inp_stride(shape), wgt_stride(shape),
                [&](int32_t* acc, const uint8_t* inp, const uint8_t* wgt) {
                  for (uint32_t b = 0; b < shape.batch; ++b, inp += size_t{block} * 2) {
                    for (uint32_t o = 0; o < block; o += kOutputs, acc += kOutputs) {
                      add_sums<kBlock, kRegisters>(block, inp, wgt + size_t{o} * 4, acc);
                    }
                  }
                });
}

void run(const TileShape& shape, const Instruction& f, const MatrixBuffers& buffers) {
  if (shape.block == 16) return run_blocks<16, 2>({shape.batch, 16}, f, buffers);
  run_blocks<0, 1>(shape, f, buffers);
}

}  // namespace

const MatrixPath kAvx2Path = {"avx2", has_avx2, whole_registers, inp_stride, wgt_stride,
                              0,      pack_inp, pack_wgt,        run};

}  // namespace tilefarm

#endif  // __x86_64__
