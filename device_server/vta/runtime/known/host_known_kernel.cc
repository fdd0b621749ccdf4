// The known kernel of a processor alone: what known_kernel.cc has an accelerator compute, in loops.
// The third number of its first buffer says how many lanes a vector has.
#include <cstdint>

#include "vta_runtime.h"

namespace {

template <typename Element>
Element* at(void* buffer) {
  return static_cast<Element*>(VTABufferCPUPtr(nullptr, buffer));
}

int8_t clipped(int32_t sum) {
  return static_cast<int8_t>(sum > 127 ? 127 : sum < -127 ? -127 : sum);
}

}  // namespace

// Buffers: shape, x, w, bias, y.
extern "C" __attribute__((visibility("default"))) int32_t
tilefarm_known_kernel(void* const* buffers, const int64_t*) {
  const auto* shape = at<const uint32_t>(buffers[0]);
  const uint32_t tiles = shape[0], rows = shape[1], lanes = shape[2];
  const auto* x = at<const int8_t>(buffers[1]);
  const auto* w = at<const int8_t>(buffers[2]);
  const auto* bias = at<const int32_t>(buffers[3]);
  auto* y = at<int8_t>(buffers[4]);
  for (uint32_t row = 0; row < tiles * rows; ++row) {
    const int8_t* tile = w + (row / rows) * lanes * lanes;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      int32_t sum = bias[row * lanes + lane];
      for (uint32_t k = 0; k < lanes; ++k) sum += x[row * lanes + k] * tile[lane * lanes + k];
      y[row * lanes + lane] = clipped(sum >> 6);
    }
  }
  return 0;
}
