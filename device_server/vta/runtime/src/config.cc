#include "config.h"

#include <algorithm>

#include "error.h"

namespace tilefarm {
namespace {

constexpr int kLogElementLimit = 12;  // an element must fit a 4 KiB page, as in the original

void require(bool holds, const char* rule) {
  if (!holds) fail(TILEFARM_VTA_BAD_CONFIG, "impossible accelerator: %s", rule);
}

void check_geometry(const Config& c) {
  require(c.log_batch >= 0 && c.log_batch <= 8 && c.log_block >= 0 && c.log_block <= 8,
          "log_batch and log_block are within 0..8");
  require(std::max({c.log_uop_buff_size, c.log_inp_buff_size, c.log_wgt_buff_size,
                    c.log_acc_buff_size}) <= 28,
          "on-chip buffers are at most 256 MiB");
  require(
      std::min({c.log_uop_depth(), c.log_inp_depth(), c.log_wgt_depth(), c.log_acc_depth()}) >= 0,
      "a buffer holds less than one element");
  require(c.log_batch + c.log_block + 2 <= kLogElementLimit && 2 * c.log_block <= kLogElementLimit,
          "elements are at most 4096 bytes");
}

// Every field must end within the word in which it begins.
void check_fields(const Config& c) {
  const IndexBits bits = c.index_bits();
  const auto ends_within = [](int end, int limit, const char* name, const char* cause) {
    if (end <= limit) return;
    fail(TILEFARM_VTA_BAD_CONFIG,
         "impossible accelerator: %s too large, for field %s would end at bit %d of %d", cause,
         name, end, limit);
  };
  constexpr const char* kOperands = "log_inp_, log_wgt_ or log_acc_buff_size is";
  const InstructionFields fields;
  const Uop uop;
  for (uint32_t opcode = 0; opcode < kOpcodes; ++opcode) {
    visit_fields(static_cast<Opcode>(opcode), bits, fields,
                 [&](int word, int bit, int width, int64_t, const char* name) {
                   const char* cause = word == 0 ? "log_uop_buff_size is" : kOperands;
                   ends_within(bit + width, kWordBits, name, cause);
                 });
  }
  visit_uop_fields(bits, uop, [&](int, int bit, int width, int64_t, const char* name) {
    ends_within(bit + width, kUopBits, name, kOperands);
  });
  require(std::max({bits.uop, bits.wgt, bits.inp, bits.acc}) <= kSramBaseBits,
          "SRAM indices exceed 16 bits");
}

void check_timing(const Config& c) {
  require(c.bus_nbytes == 8 || c.bus_nbytes == 16 || c.bus_nbytes == 32 || c.bus_nbytes == 64,
          "bus_nbytes is 8, 16, 32 or 64");
  require(c.log_burst_beats >= 1 && c.log_burst_beats <= 8, "log_burst_beats is within 1..8");
  require(c.dram_delay_cycles <= 1u << 20, "dram_delay_cycles is within 0..2^20");
  require(c.queue_entries >= 1 && c.outstanding_bursts >= 1 && c.outstanding_bursts <= 256,
          "queue_entries is at least 1, outstanding_bursts within 1..256");
}

}  // namespace

// The RTL was run at batch 1, block 16 and a 64-bit bus, with both lengths of its bursts. It has no
// MUL.
tilefarm_vta_basis Config::timing_basis() const {
  if (time_model == TimeModel::kHls) return TILEFARM_VTA_BASIS_ESTIMATE;
  const bool as_run = log_batch == 0 && log_block == 4 && bus_nbytes == 8 &&
                      (log_burst_beats == 8 || log_burst_beats == 4) && dram_delay_cycles == 16 &&
                      queue_entries == 512 && outstanding_bursts == 16 && !alu_mul;
  return as_run ? TILEFARM_VTA_BASIS_RTL : TILEFARM_VTA_BASIS_EXTRAPOLATED;
}

Config config_of(const tilefarm_vta_config& raw) {
  require(raw.log_inp_width == 3 && raw.log_wgt_width == 3 && raw.log_acc_width == 5,
          "element types are int8, int8 and int32");
  require(raw.dram_delay_cycles >= 0 && raw.queue_entries >= 0 && raw.outstanding_bursts >= 0 &&
              raw.bus_nbytes >= 0 && raw.log_burst_beats >= 0,
          "timing parameters are not negative");
  Config c;
  c.log_batch = raw.log_batch;
  c.log_block = raw.log_block;
  c.log_uop_buff_size = raw.log_uop_buff_size;
  c.log_inp_buff_size = raw.log_inp_buff_size;
  c.log_wgt_buff_size = raw.log_wgt_buff_size;
  c.log_acc_buff_size = raw.log_acc_buff_size;
  c.bus_nbytes = static_cast<uint32_t>(raw.bus_nbytes);
  c.log_burst_beats = static_cast<uint32_t>(raw.log_burst_beats);
  c.dram_delay_cycles = static_cast<uint32_t>(raw.dram_delay_cycles);
  c.queue_entries = static_cast<uint32_t>(raw.queue_entries);
  c.outstanding_bursts = static_cast<uint32_t>(raw.outstanding_bursts);
  c.functional_only = raw.functional_only != 0;
  constexpr int32_t known_features = TILEFARM_VTA_ALU_MUL | TILEFARM_VTA_ORIGINAL_UOP_CACHE;
  require((raw.features & ~known_features) == 0, "features are within 0..3");
  c.alu_mul = (raw.features & TILEFARM_VTA_ALU_MUL) != 0;
  c.original_uop_cache = (raw.features & TILEFARM_VTA_ORIGINAL_UOP_CACHE) != 0;
  require(raw.strictness >= 0 && raw.strictness <= TILEFARM_VTA_HLS, "strictness is within 0..2");
  require(raw.time_model >= 0 && raw.time_model <= TILEFARM_VTA_TIME_HLS, "time_model is 0 or 1");
  c.strictness = static_cast<Strictness>(raw.strictness);
  c.time_model = static_cast<TimeModel>(raw.time_model);
  check_geometry(c);
  check_fields(c);
  check_timing(c);
  return c;
}

}  // namespace tilefarm
