// The accelerator as a whole: takes an instruction stream, gives results, counters and a timeline.
#ifndef TILEFARM_ACCELERATOR_H_
#define TILEFARM_ACCELERATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config.h"
#include "cycle/cycle_memo.h"
#include "dram.h"
#include "encoding.h"
#include "findings.h"
#include "functional.h"
#include "hardware_rules.h"
#include "hazards.h"
#include "tokens.h"

namespace tilefarm {

struct TimelineEntry {
  uint64_t begin = 0, end = 0;
  Module module = Module::kLoad;
  uint32_t instruction = 0;
  std::string name;
};

class Accelerator {
 public:
  explicit Accelerator(const Config& config);

  // Adds to counters, timeline and findings. UNSUPPORTED, at the end, if there are errors among
  // the latter.
  void run(const std::vector<Word>& words);
  void reset();  // on-chip buffers and tokens; not DRAM
  bool tokens_left() const;
  std::string describe_tokens() const;

  Dram& dram() { return dram_; }
  const Config& config() const { return config_; }
  const Encoding& encoding() const { return encoding_; }
  const tilefarm_vta_counters& counters() const { return counters_; }
  void clear_counters();
  void forget_times() { memo_.forget(); }  // of streams that ran before
  const std::vector<TimelineEntry>& timeline() const { return timeline_; }
  void record_timeline(bool on) { recording_ = on; }
  const std::vector<Finding>& findings() const { return findings_.all(); }

  void limit_uops(uint64_t limit) { uop_limit_ = limit; }
  void use_vector_path(const std::string& name);  // empty for the fastest; on-chip buffers to zero

 private:
  void execute(const std::vector<Instruction>& instructions, bool check_hazards);
  void require_short(const Instruction& instruction);
  CycleResult time_of(const std::vector<Instruction>& instructions, const Tokens& tokens) const;
  void add_timing(const CycleResult& timing);
  void add_timeline(const CycleResult& timing, const std::vector<Instruction>& instructions);

  const Config config_;
  const Encoding encoding_;
  Dram dram_;
  std::optional<Functional> functional_;
  HazardChecker hazards_;
  Findings findings_;
  HardwareRules rules_;
  CycleMemo memo_;
  Tokens tokens_{};
  tilefarm_vta_counters counters_{};
  uint64_t uop_limit_ = uint64_t{1} << 31;
  uint64_t uops_ = 0;  // executed in this run
  bool recording_ = false;
  std::vector<TimelineEntry> timeline_;
};

}  // namespace tilefarm

#endif  // TILEFARM_ACCELERATOR_H_
