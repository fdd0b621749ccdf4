#include "gemm.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilefarm {
namespace {

void portable_product(const TileShape& shape, const int16_t* inp, const int16_t* wgt,
                      int32_t* acc) {
  const uint32_t pairs = shape.pairs();
  for (uint32_t b = 0; b < shape.batch; ++b, inp += 2 * pairs, acc += shape.block) {
    const int16_t* w = wgt;
    for (uint32_t p = 0; p < pairs; ++p) {
      const int32_t x0 = inp[2 * p], x1 = inp[2 * p + 1];
      for (uint32_t o = 0; o < shape.block; ++o, w += 2) {
        const uint32_t sum = static_cast<uint32_t>(w[0] * x0 + w[1] * x1);
        acc[o] = static_cast<int32_t>(static_cast<uint32_t>(acc[o]) + sum);
      }
    }
  }
}

#if defined(__x86_64__)
// Block 16: two registers of eight sums; each step multiplies a pair of channels for eight outputs.
__attribute__((target("avx2"))) void avx2_product_16(const TileShape& shape, const int16_t* inp,
                                                     const int16_t* wgt, int32_t* acc) {
  for (uint32_t b = 0; b < shape.batch; ++b, inp += 16, acc += 16) {
    auto* out = reinterpret_cast<__m256i*>(acc);
    __m256i low = _mm256_loadu_si256(out);
    __m256i high = _mm256_loadu_si256(out + 1);
    const auto* w = reinterpret_cast<const __m256i*>(wgt);
    for (int p = 0; p < 8; ++p, w += 2) {
      int32_t pair;
      std::memcpy(&pair, inp + 2 * p, sizeof pair);
      const __m256i x = _mm256_set1_epi32(pair);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_loadu_si256(w), x));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_loadu_si256(w + 1), x));
    }
    _mm256_storeu_si256(out, low);
    _mm256_storeu_si256(out + 1, high);
  }
}

bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#endif

}  // namespace

void widen_inp(const TileShape& shape, const int8_t* from, int16_t* to) {
  const uint32_t width = shape.pairs() * 2;
  for (uint32_t b = 0; b < shape.batch; ++b, from += shape.block, to += width) {
    for (uint32_t i = 0; i < shape.block; ++i) to[i] = from[i];
    if (width != shape.block) to[width - 1] = 0;
  }
}

void widen_wgt(const TileShape& shape, const int8_t* from, int16_t* to) {
  for (uint32_t p = 0; p < shape.pairs(); ++p) {
    for (uint32_t o = 0; o < shape.block; ++o, to += 2) {
      const int8_t* row = from + o * shape.block;
      to[0] = row[2 * p];
      to[1] = 2 * p + 1 < shape.block ? row[2 * p + 1] : int8_t{0};
    }
  }
}

TileProduct tile_product(const TileShape& shape) {
#if defined(__x86_64__)
  if (shape.block == 16 && has_avx2()) return avx2_product_16;
#endif
  (void)shape;
  return portable_product;
}

const char* tile_product_name(const TileShape& shape) {
  return tile_product(shape) == portable_product ? "portable" : "avx2";
}

}  // namespace tilefarm
