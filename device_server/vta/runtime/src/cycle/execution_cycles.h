// How long instructions without a loader keep their module: closed forms of the Chisel units.
#ifndef TILEFARM_CYCLE_EXECUTION_CYCLES_H_
#define TILEFARM_CYCLE_EXECUTION_CYCLES_H_

#include <cstdint>

#include "../config.h"
#include "../encoding.h"

namespace tilefarm {

// Execution cycles of STORE, GEMM, ALU and FINISH.
uint64_t execution_cycles(const Config& config, const Instruction& instruction);

// Of these, cycles in which STORE sends a command or waits for an acknowledgement.
uint64_t round_trip_cycles(const Config& config, const Instruction& instruction);

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_EXECUTION_CYCLES_H_
