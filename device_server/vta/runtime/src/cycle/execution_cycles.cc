#include "execution_cycles.h"

#include <algorithm>

namespace tilefarm {
namespace {

constexpr uint64_t kPipelineCycles = 6;  // of the GEMM and ALU units (TensorGemm, TensorAlu)
constexpr uint64_t kWriteCycles = 4;  // per burst: command, acknowledgement (TensorStoreNarrowVME)

// A burst of b beats takes b cycles, one more between elements, and the write's round trip.
uint64_t burst_cycles(const Config& config, uint64_t beats) {
  const uint64_t element_beats = config.out_nbytes() / config.bus_nbytes;
  const uint64_t gaps = element_beats > 1 ? beats / element_beats - 1 : 0;
  return beats + gaps + kWriteCycles;
}

// Calls visit(beats) for every burst of a STORE: rows, split at multiples of the longest burst.
template <typename Visit>
void for_each_burst(const Config& config, const Instruction& f, const Visit& visit) {
  const uint64_t page = config.burst_nbytes(), bus = config.bus_nbytes;
  const uint64_t element = config.out_nbytes();
  for (uint32_t y = 0; y < f.y_size; ++y) {
    uint64_t address = (uint64_t{f.dram_base} + uint64_t{y} * f.x_stride) * element;
    const uint64_t end = address + f.x_size * element;
    while (address < end) {
      const uint64_t stop = std::min(end, (address / page + 1) * page);
      visit((stop + bus - 1) / bus - address / bus);
      address = stop;
    }
  }
}

// Bursts are strictly serial and see no DRAM delay.
uint64_t store_cycles(const Config& config, const Instruction& f) {
  uint64_t cycles = 0;
  for_each_burst(config, f, [&](uint64_t beats) { cycles += burst_cycles(config, beats); });
  return cycles;
}

}  // namespace

uint64_t execution_cycles(const Config& config, const Instruction& f) {
  switch (f.op()) {
    case Opcode::kStore: return store_cycles(config, f);
    case Opcode::kGemm: return f.executed_uops() + kPipelineCycles;
    case Opcode::kAlu: return f.executed_uops() * (f.use_imm ? 1 : 2) + kPipelineCycles;
    default: return 1;
  }
}

uint64_t round_trip_cycles(const Config& config, const Instruction& f) {
  uint64_t cycles = 0;
  if (f.op() == Opcode::kStore)
    for_each_burst(config, f, [&](uint64_t) { cycles += kWriteCycles; });
  return cycles;
}

}  // namespace tilefarm
