// The fast tile product against the obvious one, extreme values included.

#include <random>
#include <vector>

#include "check.h"
#include "gemm.h"

using namespace tilefarm;

namespace {

std::vector<int8_t> random_bytes(std::mt19937& random, size_t count) {
  std::vector<int8_t> bytes(count);
  for (int8_t& b : bytes) b = random() % 4 ? static_cast<int8_t>(random()) : int8_t{-128};
  return bytes;
}

void equals_the_definition(const TileShape& shape) {
  std::mt19937 random(shape.block * 16 + shape.batch);
  const auto inp = random_bytes(random, size_t{shape.batch} * shape.block);
  const auto wgt = random_bytes(random, size_t{shape.block} * shape.block);
  std::vector<int32_t> acc(inp.size());
  for (int32_t& a : acc) a = static_cast<int32_t>(random());
  std::vector<int32_t> expected = acc;
  for (uint32_t b = 0; b < shape.batch; ++b) {
    for (uint32_t o = 0; o < shape.block; ++o) {
      auto sum = static_cast<uint32_t>(expected[b * shape.block + o]);
      for (uint32_t i = 0; i < shape.block; ++i) {
        sum += static_cast<uint32_t>(inp[b * shape.block + i] * wgt[o * shape.block + i]);
      }
      expected[b * shape.block + o] = static_cast<int32_t>(sum);
    }
  }
  std::vector<int16_t> wide_inp(shape.inp_elements()), wide_wgt(shape.wgt_elements());
  widen_inp(shape, inp.data(), wide_inp.data());
  widen_wgt(shape, wgt.data(), wide_wgt.data());
  tile_product(shape)(shape, wide_inp.data(), wide_wgt.data(), acc.data());
  CHECK(acc == expected);
}

}  // namespace

int main() {
  for (uint32_t batch : {1u, 2u, 4u}) {
    for (uint32_t block : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) equals_the_definition({batch, block});
  }
}
