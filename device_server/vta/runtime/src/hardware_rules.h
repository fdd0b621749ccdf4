// Where the Chisel or the HLS design hangs, wraps around, or computes something else than the
// functional rules say.
//
// Sources: the Chisel and HLS sources of apache/tvm-vta, and runs of the RTL made from them.
#ifndef TILEFARM_HARDWARE_RULES_H_
#define TILEFARM_HARDWARE_RULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config.h"
#include "encoding.h"
#include "findings.h"
#include "tokens.h"

namespace tilefarm {

class HardwareRules {
 public:
  HardwareRules(const Config& config, Findings& findings);

  void reset();  // nothing is known of the on-chip buffers

  // Before the instruction executes, with the micro-op and accumulator buffers as they are then.
  void visit(size_t index, const Instruction& instruction, const std::vector<Uop>& uops,
             const int32_t* acc);

  // After a run that left these tokens.
  void finish(const std::vector<Instruction>& instructions, const Tokens& tokens);

 private:
  // Why OUT, a memory of its own, does not hold the low bits of an ACC element; or that it does.
  enum class Out : uint8_t { kSame, kNever, kLoaded, kReset };
  struct Access {
    uint64_t dst, src;
  };

  bool chisel() const { return config_.strictness == Strictness::kChisel; }
  bool hls() const { return config_.strictness == Strictness::kHls; }
  void error(const char* rule, const std::string& text);
  void warn(const char* rule, const std::string& text);

  void visit_load(const Instruction& f);
  void visit_store(const Instruction& f);
  void visit_gemm(const Instruction& f, const std::vector<Uop>& uops);
  void visit_alu(const Instruction& f, const std::vector<Uop>& uops, const int32_t* acc);
  void check_padding(const Instruction& f);
  void check_uop_depth(uint64_t end);
  void check_mul(const Instruction& f);
  void check_shift(const Instruction& f, int32_t amount);
  void check_immediate_source(const Access& at);
  void check_alu_distance(const Access& at);
  void check_gemm_distance(const Access& at);
  void mark(uint64_t begin, uint64_t count, Out state);
  template <typename Body>
  void for_each_access(const Instruction& f, const std::vector<Uop>& uops, const Body& body);

  const Config config_;
  Findings& findings_;
  std::vector<Out> out_;          // per ACC element
  std::vector<uint64_t> recent_;  // dst of the one or two micro-ops before
  size_t index_ = 0;              // of the instruction that is visited
};

}  // namespace tilefarm

#endif  // TILEFARM_HARDWARE_RULES_H_
