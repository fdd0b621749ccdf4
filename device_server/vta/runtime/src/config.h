// Geometry and timing of one accelerator, with the sizes that hw_spec_const.h derives from them.
#ifndef TILEFARM_CONFIG_H_
#define TILEFARM_CONFIG_H_

#include <cstdint>

#include "isa.h"
#include "tilefarm_vta.h"

namespace tilefarm {

constexpr uint32_t kUopNbytes = kUopBits / 8;
constexpr uint32_t kInstructionNbytes = 2 * kWordBits / 8;

enum class Strictness { kFunctional = 0, kChisel = 1, kHls = 2 };
enum class TimeModel { kChisel = 0, kHls = 1 };

struct Config {
  // Geometry; defaults are those of vta_config.json.
  int log_batch = 0;
  int log_block = 4;
  int log_uop_buff_size = 15;
  int log_inp_buff_size = 15;
  int log_wgt_buff_size = 18;
  int log_acc_buff_size = 17;
  // Bus and memory; defaults are the 64-bit shells with 256-beat bursts and the tsim memory.
  uint32_t bus_nbytes = 8;
  uint32_t log_burst_beats = 8;
  uint32_t dram_delay_cycles = 16;
  uint32_t queue_entries = 512;
  uint32_t outstanding_bursts = 16;
  bool functional_only = false;
  bool alu_mul = false;
  bool original_uop_cache = false;
  Strictness strictness = Strictness::kFunctional;
  TimeModel time_model = TimeModel::kChisel;

  uint32_t batch() const { return 1u << log_batch; }
  uint32_t block() const { return 1u << log_block; }

  uint32_t element_nbytes(Memory memory) const {
    return tilefarm::element_nbytes(memory, batch(), block());
  }
  uint32_t wgt_nbytes() const { return element_nbytes(Memory::kWgt); }
  uint32_t acc_nbytes() const { return element_nbytes(Memory::kAcc); }
  uint32_t out_nbytes() const { return element_nbytes(Memory::kOut); }

  int log_uop_depth() const { return log_uop_buff_size - 2; }
  int log_inp_depth() const { return log_inp_buff_size - log_batch - log_block; }
  int log_wgt_depth() const { return log_wgt_buff_size - 2 * log_block; }
  int log_acc_depth() const { return log_acc_buff_size - log_batch - log_block - 2; }
  IndexBits index_bits() const {
    return {log_uop_depth(), log_wgt_depth(), log_inp_depth(), log_acc_depth()};
  }

  uint32_t uop_depth() const { return 1u << log_uop_depth(); }
  uint32_t inp_depth() const { return 1u << log_inp_depth(); }
  uint32_t wgt_depth() const { return 1u << log_wgt_depth(); }
  uint32_t acc_depth() const { return 1u << log_acc_depth(); }

  tilefarm_vta_basis timing_basis() const;

  // Bursts neither exceed this nor cross a multiple of it.
  uint64_t burst_nbytes() const { return uint64_t{bus_nbytes} << log_burst_beats; }
};

// Checks and converts; throws BAD_CONFIG with every number that matters.
Config config_of(const tilefarm_vta_config& raw);

}  // namespace tilefarm

#endif  // TILEFARM_CONFIG_H_
