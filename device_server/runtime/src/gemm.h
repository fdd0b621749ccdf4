// The matrix unit: ACC tile += INP tile x WGT tile transposed, in the layouts that make it fast.
#ifndef TILEFARM_GEMM_H_
#define TILEFARM_GEMM_H_

#include <cstdint>

namespace tilefarm {

// Tiles are kept widened to int16 and, for weights, with two input channels side by side:
// inp[batch][block], wgt[pair of input channels][output channel][2]. An odd block has a zero at the
// end.
struct TileShape {
  uint32_t batch;
  uint32_t block;
  uint32_t pairs() const { return (block + 1) / 2; }
  uint32_t inp_elements() const { return batch * pairs() * 2; }
  uint32_t wgt_elements() const { return pairs() * block * 2; }
};

void widen_inp(const TileShape& shape, const int8_t* from, int16_t* to);
void widen_wgt(const TileShape& shape, const int8_t* from, int16_t* to);

// Adds one tile product with 32-bit wrap-around.
using TileProduct = void (*)(const TileShape&, const int16_t* inp, const int16_t* wgt,
                             int32_t* acc);

// The fastest product that this processor has for the shape.
TileProduct tile_product(const TileShape& shape);
const char* tile_product_name(const TileShape& shape);

}  // namespace tilefarm

#endif  // TILEFARM_GEMM_H_
