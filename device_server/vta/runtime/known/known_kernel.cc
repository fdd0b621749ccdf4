// The known kernel: a small matrix product, shifted and clipped, whose answer every device must
// give.
//
// A shared object like any compiled kernel: it calls the VTA runtime and nothing else, so it is
// verified, loaded and run as those are. It fits every geometry: its first buffer says how many
// tiles there are and how many rows each has (two int32). device_server/device/known_kernel.py
// makes the buffers and knows the answer.
//
//   y[t, r] = clip(bias[t, r] + x[t, r] . w[t] transposed >> 6, -127, 127)
//
// Tiles share the on-chip buffers, so that each of the four tokens between modules is needed.
#include <cstdint>

#include "isa.h"
#include "vta_runtime.h"

namespace {

using tilefarm::AluOp;
using tilefarm::Memory;
using tilefarm::UopMode;

constexpr int kLoad = tilefarm::stage_of(tilefarm::Module::kLoad);
constexpr int kCompute = tilefarm::stage_of(tilefarm::Module::kCompute);
constexpr int kStore = tilefarm::stage_of(tilefarm::Module::kStore);

constexpr uint32_t kWaitCycles = 1u << 31;

template <typename Enum>
constexpr uint32_t number(Enum value) {
  return static_cast<uint32_t>(value);
}

// Record functions are told the rows; the runtime allows a signature of one int.
uint32_t rows_of(const void* signature) { return *static_cast<const uint32_t*>(signature); }

int record_product(void* signature) {
  VTAUopLoopBegin(rows_of(signature), 1, 1, 0);
  VTAUopPush(number(UopMode::kGemm), 0, 0, 0, 0, 0, 0, 0);
  VTAUopLoopEnd();
  return 0;
}

template <AluOp operation, int32_t immediate>
int record_immediate(void* signature) {
  VTAUopLoopBegin(rows_of(signature), 1, 1, 0);
  VTAUopPush(number(UopMode::kAlu), 0, 0, 0, 0, number(operation), 1, immediate);
  VTAUopLoopEnd();
  return 0;
}

void load(void* command, void* from, uint32_t element, uint32_t count, Memory memory) {
  VTALoadBuffer2D(command, from, element, count, 1, count, 0, 0, 0, 0, 0, number(memory));
}

}  // namespace

// Buffers: shape, x, w, bias, y.
extern "C" __attribute__((visibility("default"))) int32_t
tilefarm_known_kernel(void* const* buffers, const int64_t*) {
  static void *product, *shift, *upper, *lower;
  void* command = VTATLSCommandHandle();
  const auto* shape = static_cast<const uint32_t*>(VTABufferCPUPtr(command, buffers[0]));
  const uint32_t tiles = shape[0];
  uint32_t rows = shape[1];
  for (uint32_t t = 0; t < tiles; ++t) {
    const bool again = t > 0, more = t + 1 < tiles;
    if (again) VTADepPop(command, kCompute, kLoad);
    load(command, buffers[1], t * rows, rows, Memory::kInp);
    load(command, buffers[2], t, 1, Memory::kWgt);
    VTADepPush(command, kLoad, kCompute);
    if (again) VTADepPop(command, kStore, kCompute);
    load(command, buffers[3], t * rows, rows, Memory::kAcc);
    VTADepPop(command, kLoad, kCompute);
    VTAPushGEMMOp(&product, record_product, &rows, sizeof rows);
    if (more) VTADepPush(command, kCompute, kLoad);
    VTAPushALUOp(&shift, record_immediate<AluOp::kShr, 6>, &rows, sizeof rows);
    VTAPushALUOp(&upper, record_immediate<AluOp::kMin, 127>, &rows, sizeof rows);
    VTAPushALUOp(&lower, record_immediate<AluOp::kMax, -127>, &rows, sizeof rows);
    VTADepPush(command, kCompute, kStore);
    VTADepPop(command, kCompute, kStore);
    VTAStoreBuffer2D(command, 0, number(Memory::kOut), buffers[4], t * rows, rows, 1, rows);
    if (more) VTADepPush(command, kStore, kCompute);
  }
  VTASynchronize(command, kWaitCycles);
  return 0;
}
