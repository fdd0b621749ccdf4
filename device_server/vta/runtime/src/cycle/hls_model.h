// The time of the HLS design for FPGAs, an estimate: modules, tokens and rows on a shared read port.
//
// What an instruction takes alone was measured on Verilog that Vivado HLS 2019.1 made of
// hardware/xilinx/src/vta.cc of apache/tvm-vta; latency and contention on a board are assumptions.
// See HLS.md.
#ifndef TILEFARM_CYCLE_HLS_MODEL_H_
#define TILEFARM_CYCLE_HLS_MODEL_H_

#include <vector>

#include "cycle_model.h"

namespace tilefarm {

// The stream must run to its end in token order. `cycles` ends with the last instruction.
CycleResult estimate_hls_cycles(const Config& config, const std::vector<Instruction>& instructions,
                                const Tokens& tokens);

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_HLS_MODEL_H_
