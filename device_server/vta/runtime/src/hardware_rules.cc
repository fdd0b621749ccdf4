#include "hardware_rules.h"

#include <algorithm>

namespace tilefarm {
namespace {

constexpr uint64_t kChiselUopDepth = 2048;  // uopMemDepth in core/Configs.scala, for any config
constexpr uint64_t kNowhere = UINT64_MAX;

uint64_t footprint(const Instruction& f) {
  return (uint64_t{f.x_pad_0} + f.x_size + f.x_pad_1) *
         (uint64_t{f.y_pad_0} + f.y_size + f.y_pad_1);
}

bool padded(const Instruction& f) { return f.x_pad_0 || f.x_pad_1 || f.y_pad_0 || f.y_pad_1; }

std::string number(uint64_t value) { return std::to_string(value); }

}  // namespace

HardwareRules::HardwareRules(const Config& config, Findings& findings)
    : config_(config), findings_(findings), recent_(2, kNowhere) {
  reset();
}

void HardwareRules::reset() { out_.assign(config_.acc_depth(), Out::kNever); }

void HardwareRules::error(const char* rule, const std::string& text) {
  findings_.add(Severity::kError, rule, index_, text);
}

void HardwareRules::warn(const char* rule, const std::string& text) {
  findings_.add(Severity::kWarning, rule, index_, text);
}

void HardwareRules::visit(size_t index, const Instruction& f, const std::vector<Uop>& uops,
                          const int32_t* acc) {
  index_ = index;
  check_mul(f);
  if (config_.strictness == Strictness::kFunctional) return;
  std::fill(recent_.begin(), recent_.end(), kNowhere);
  if (chisel() && f.is_memory() && f.x_size != 0 && f.y_size == 0) {
    error("y-size-0", "y size 0 with x size " + number(f.x_size) + ": the module hangs");
  }
  if (f.is_nop()) return;
  switch (f.op()) {
    case Opcode::kLoad: return visit_load(f);
    case Opcode::kStore: return visit_store(f);
    case Opcode::kGemm: return visit_gemm(f, uops);
    case Opcode::kAlu: return visit_alu(f, uops, acc);
    case Opcode::kFinish: return;
  }
}

void HardwareRules::visit_load(const Instruction& f) {
  if (f.mem() == Memory::kAcc8) {
    error("acc-8bit",
          chisel() ? "LOAD ACC8: fetch does not know it and hangs" : "LOAD ACC8 is ignored");
  }
  if (hls()) check_padding(f);
  if (f.mem() == Memory::kUop) check_uop_depth(f.sram_base + footprint(f));
  if (f.mem() == Memory::kAcc || f.mem() == Memory::kAcc8) {
    mark(f.sram_base, footprint(f), Out::kLoaded);
  }
}

void HardwareRules::check_padding(const Instruction& f) {
  if (f.mem() == Memory::kWgt && padded(f)) error("pads", "the padding of a LOAD WGT is ignored");
  if (f.mem() == Memory::kUop && (padded(f) || f.y_size != 1)) {
    error("pads", "a LOAD UOP is one row: y size " + number(f.y_size) + " and padding are ignored");
  }
}

void HardwareRules::check_uop_depth(uint64_t end) {
  if (!chisel() || end <= kChiselUopDepth) return;
  error("uop-depth", "micro-op " + number(end - 1) + ": the buffer's index wraps around at 2048");
}

void HardwareRules::visit_store(const Instruction& f) {
  const uint64_t end = std::min<uint64_t>(f.sram_base + footprint(f), out_.size());
  for (uint64_t k = f.sram_base; k < end; ++k) {
    const std::string element = "OUT element " + number(k);
    switch (out_[k]) {
      case Out::kSame: continue;
      case Out::kNever: error("stale-out", element + " was never computed"); break;
      case Out::kLoaded:
        error("stale-out",
              element + " does not see what was loaded into ACC: OUT is a memory of " + "its own");
        break;
      case Out::kReset:
        error("stale-out", element + (chisel() ? " does not see that ACC was reset"
                                               : " holds a sum, not 0, after a reset of ACC"));
        break;
    }
    return;
  }
}

void HardwareRules::mark(uint64_t begin, uint64_t count, Out state) {
  const uint64_t end = std::min<uint64_t>(begin + count, out_.size());
  for (uint64_t k = begin; k < end; ++k) out_[k] = state;
}

// Stops at what is out of range: the instruction will fail for that.
template <typename Body>
void HardwareRules::for_each_access(const Instruction& f, const std::vector<Uop>& uops,
                                    const Body& body) {
  if (f.uop_end > uops.size()) return;
  for (uint32_t o = 0; o < f.iter_out; ++o) {
    for (uint32_t i = 0; i < f.iter_in; ++i) {
      for (uint32_t u = f.uop_begin; u < f.uop_end; ++u) {
        const Access at{uops[u].dst + uint64_t{o} * f.dst_out + uint64_t{i} * f.dst_in,
                        uops[u].src + uint64_t{o} * f.src_out + uint64_t{i} * f.src_in};
        if (at.dst >= out_.size()) return;
        body(at);
        recent_[1] = recent_[0];
        recent_[0] = at.dst;
      }
    }
  }
}

void HardwareRules::visit_gemm(const Instruction& f, const std::vector<Uop>& uops) {
  check_uop_depth(f.uop_end);
  for_each_access(f, uops, [&](const Access& at) {
    if (hls() && !f.reset) check_gemm_distance(at);
    out_[at.dst] = f.reset ? Out::kReset : Out::kSame;
  });
}

void HardwareRules::check_gemm_distance(const Access& at) {
  if (at.dst != recent_[0] && at.dst != recent_[1]) return;
  error("gemm-raw", "ACC element " + number(at.dst) +
                        " is added to again within three micro-ops: an update is lost");
}

void HardwareRules::visit_alu(const Instruction& f, const std::vector<Uop>& uops,
                              const int32_t* acc) {
  check_uop_depth(f.uop_end);
  const bool shifts = static_cast<AluOp>(f.alu_opcode) == AluOp::kShr;
  if (shifts && f.use_imm) check_shift(f, f.imm);
  if (shifts && !f.use_imm && chisel() && f.imm < 0) {
    error("shift-range", "the sign of the unused immediate turns the shift by a register around");
  }
  const size_t lanes = config_.batch() * config_.block();
  for_each_access(f, uops, [&](const Access& at) {
    if (f.use_imm) check_immediate_source(at);
    check_alu_distance(at);
    if (shifts && !f.use_imm && at.src < out_.size()) {
      const int32_t* amounts = acc + at.src * lanes;
      for (size_t k = 0; k < lanes; ++k) check_shift(f, amounts[k]);
    }
    out_[at.dst] = Out::kSame;
  });
}

// Only what is configured to have MUL has it; the functional simulator would compute it for all.
void HardwareRules::check_mul(const Instruction& f) {
  if (config_.alu_mul || f.is_nop() || f.op() != Opcode::kAlu) return;
  if (static_cast<AluOp>(f.alu_opcode) != AluOp::kMul) return;
  error("mul", chisel() ? "MUL: fetch does not know it and hangs"
               : hls()  ? "MUL leaves dst as it was and garbage in OUT"
                        : "MUL: this accelerator's ALU is configured without it (alu_mul)");
}

// Chisel takes the amount modulo 32, and to the left by immediates only; HLS takes five signed
// bits.
void HardwareRules::check_shift(const Instruction& f, int32_t amount) {
  const int32_t least = hls() ? -16 : f.use_imm ? -31 : 0;
  const int32_t most = hls() ? 15 : 31;
  if (amount >= least && amount <= most) return;
  error("shift-range", "a shift by " + std::to_string(amount) + " is not within " +
                           std::to_string(least) + ".." + std::to_string(most));
}

void HardwareRules::check_immediate_source(const Access& at) {
  if (at.src == at.dst) return;
  const std::string where = "src " + number(at.src) + ", dst " + number(at.dst);
  if (chisel()) error("imm-src", where + ": an operation with an immediate reads src, not dst");
  if (hls()) warn("imm-src", where + ": which of them is read is not known");
}

void HardwareRules::check_alu_distance(const Access& at) {
  const std::string element = "ACC element ";
  if (chisel() && at.src == recent_[0]) {
    error("alu-raw", element + number(at.src) + " is read by the micro-op after the one that " +
                         "writes it: the old value is used");
  }
  if (!hls()) return;
  if (at.dst == recent_[0] || at.dst == recent_[1]) {
    error("alu-raw",
          element + number(at.dst) + " is written again within three micro-ops: an update is lost");
  } else if (at.src == recent_[0] || at.src == recent_[1]) {
    warn("alu-raw", element + number(at.src) + " is read within three micro-ops of its writing");
  }
}

void HardwareRules::finish(const std::vector<Instruction>& instructions, const Tokens& tokens) {
  for (int q = 0; q < kTokenQueues; ++q) {
    if (tokens[q] == 0) continue;
    const auto gives = [&](const Instruction& f) { return token_use(f).pushes >> q & 1; };
    const auto last = std::find_if(instructions.rbegin(), instructions.rend(), gives);
    index_ = last == instructions.rend() ? 0 : static_cast<size_t>(instructions.rend() - last) - 1;
    const bool one = tokens[q] == 1;
    const std::string text = number(tokens[q]) + (one ? " token " : " tokens ") +
                             kTokenQueueNames[q] + (one ? " is" : " are") +
                             " left over for the next run to find";
    const bool strict = config_.strictness != Strictness::kFunctional;
    findings_.add(strict ? Severity::kError : Severity::kWarning, "tokens-left", index_, text);
  }
}

}  // namespace tilefarm
