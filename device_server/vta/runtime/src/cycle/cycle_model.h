// The accelerator's time: fetch, three in-order modules, tokens and loaders, stepped cycle by
// cycle.
//
// Reproduces the Chisel design with the memory of its tsim test bench, cycle for cycle.
#ifndef TILEFARM_CYCLE_CYCLE_MODEL_H_
#define TILEFARM_CYCLE_CYCLE_MODEL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "../config.h"
#include "../encoding.h"
#include "../tokens.h"

namespace tilefarm {

// An instruction's module is busy with it in cycles [begin, end). FINISH cuts off what still runs;
// what it keeps from beginning has [0, 0).
struct Span {
  uint64_t begin = 0, end = 0;
};

// What a module did with its cycles, 1 to the last; the launch in cycle 0 does not count. `idle` is
// between two instructions, and after the last one.
struct ModuleCycles {
  uint64_t busy = 0;
  uint64_t token = 0;   // stalled: the next instruction waits for another module
  uint64_t queue = 0;   // stalled: fetch has not delivered the next instruction
  uint64_t memory = 0;  // stalled: an instruction waits for DRAM
  uint64_t idle = 0;
};

struct CycleResult {
  uint64_t cycles = 0;  // index of the cycle in which FINISH executes; 0 is the launch
  std::array<ModuleCycles, kModules> modules{};
  std::vector<Span> spans;  // per instruction
};

// kJump leaps over stretches in which only counters count; both give the same result.
enum class Pace { kStep, kJump };

// The stream must run to its end in token order. DEADLOCK when it still does not, because a token
// counter saturated.
CycleResult count_cycles(const Config& config, const std::vector<Instruction>& instructions,
                         const Tokens& tokens, Pace pace = Pace::kJump);

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_CYCLE_MODEL_H_
