// Every implementation of the matrix unit against the definition, extreme values included.

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "matrix/matrix_path.h"

using namespace tilefarm;

namespace {

constexpr uint32_t kElements = 6;

std::vector<int8_t> random_bytes(std::mt19937& random, size_t count) {
  std::vector<int8_t> bytes(count);
  for (int8_t& b : bytes) b = random() % 4 ? static_cast<int8_t>(random()) : int8_t{-128};
  return bytes;
}

Instruction two_loops() {
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kGemm);
  f.uop_begin = 1;
  f.uop_end = 3;
  f.iter_out = f.iter_in = 2;
  f.dst_out = f.src_in = f.wgt_out = f.wgt_in = 1;
  f.dst_in = f.src_out = 2;
  return f;
}

void add_product(const TileShape& shape, const int8_t* inp, const int8_t* wgt, int32_t* acc) {
  for (uint32_t b = 0; b < shape.batch; ++b) {
    for (uint32_t o = 0; o < shape.block; ++o) {
      auto sum = static_cast<uint32_t>(acc[b * shape.block + o]);
      for (uint32_t i = 0; i < shape.block; ++i) {
        sum += static_cast<uint32_t>(inp[b * shape.block + i] * wgt[o * shape.block + i]);
      }
      acc[b * shape.block + o] = static_cast<int32_t>(sum);
    }
  }
}

std::vector<uint8_t> packed(const TileShape& shape, const std::vector<int8_t>& from,
                            uint32_t stride,
                            void (*pack)(const TileShape&, const int8_t*, uint8_t*)) {
  std::vector<uint8_t> to(size_t{stride} * kElements, 0xEE);
  for (uint32_t k = 0; k < kElements; ++k) {
    pack(shape, from.data() + k * (from.size() / kElements), to.data() + size_t{k} * stride);
  }
  return to;
}

void equals_the_definition(const MatrixPath& path, const TileShape& shape) {
  std::mt19937 random(shape.block * 16 + shape.batch);
  const size_t row = shape.acc_elements();
  const size_t tile = size_t{shape.block} * shape.block;
  const auto inp = random_bytes(random, row * kElements);
  const auto wgt = random_bytes(random, tile * kElements);
  std::vector<int32_t> acc(row * kElements);
  for (int32_t& a : acc) a = static_cast<int32_t>(random());
  std::vector<int32_t> expected = acc;
  const std::vector<Uop> uops{{9, 9, 9}, {0, 1, 2}, {2, 0, 3}};
  const Instruction f = two_loops();
  for (uint32_t o = 0; o < 2; ++o) {
    for (uint32_t i = 0; i < 2; ++i) {
      for (uint32_t u = 1; u < 3; ++u) {
        add_product(shape, &inp[(uops[u].src + 2 * o + i) * row],
                    &wgt[(uops[u].wgt + o + i) * tile], &expected[(uops[u].dst + o + 2 * i) * row]);
      }
    }
  }
  const auto x = packed(shape, inp, path.inp_stride(shape), path.pack_inp);
  const auto w = packed(shape, wgt, path.wgt_stride(shape), path.pack_wgt);
  path.run(shape, f, {uops.data(), x.data(), w.data(), acc.data()});
  CHECK(acc == expected);
}

void zeros_are_what_they_are_said_to_be(const MatrixPath& path, const TileShape& shape) {
  const std::vector<int8_t> zeros(size_t{shape.block} * std::max(shape.block, shape.batch));
  std::vector<uint8_t> inp(path.inp_stride(shape)), wgt(path.wgt_stride(shape), 0xEE);
  path.pack_inp(shape, zeros.data(), inp.data());
  path.pack_wgt(shape, zeros.data(), wgt.data());
  for (uint8_t byte : inp) CHECK(byte == 0);
  for (uint8_t byte : wgt) CHECK(byte == path.wgt_zero_byte);
}

}  // namespace

int main() {
  CHECK(matrix_paths().size() >= 2);
  for (const MatrixPath* path : matrix_paths()) {
    for (uint32_t batch : {1u, 2u, 4u}) {
      for (uint32_t block : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
        const TileShape shape{batch, block};
        CHECK(matrix_path(path->name, shape).has_shape(shape));
        if (!path->has_shape(shape)) continue;
        equals_the_definition(*path, shape);
        zeros_are_what_they_are_said_to_be(*path, shape);
      }
    }
  }
  CHECK_FAULT(TILEFARM_VTA_BAD_ARGUMENT, matrix_path("abacus", TileShape{1, 16}));
}
