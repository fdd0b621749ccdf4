#include "accelerator.h"

#include <algorithm>
#include <utility>

#include "cycle/hls_model.h"
#include "describe.h"
#include "error.h"
#include "token_order.h"

namespace tilefarm {

Accelerator::Accelerator(const Config& config)
    : config_(config),
      encoding_(config_),
      dram_(config.burst_nbytes()),
      hazards_(config_),
      rules_(config_, findings_) {
  use_vector_path("");
}

void Accelerator::use_vector_path(const std::string& name) {
  functional_.emplace(config_, encoding_, name);
  rules_.reset();
}

void Accelerator::run(const std::vector<Word>& words) {
  std::vector<Instruction> instructions;
  instructions.reserve(words.size());
  for (const Word& word : words) instructions.push_back(encoding_.decode(word));
  const Tokens before = tokens_;
  const CycleMemo::Key key = CycleMemo::key_of(words, before);
  const bool is_timed = !config_.functional_only;
  const CycleResult* timing = is_timed && !recording_ ? memo_.find(key) : nullptr;
  const bool is_new = is_timed && timing == nullptr;
  findings_.begin_run();
  execute(instructions, is_new);
  rules_.finish(instructions, tokens_);
  counters_.instructions += instructions.size();
  if (is_new) {
    CycleResult fresh = time_of(instructions, before);
    if (recording_) add_timeline(fresh, instructions);
    timing = &memo_.keep(key, std::move(fresh));
  }
  if (timing != nullptr) add_timing(*timing);
  const Finding* wrong = findings_.first_error();
  if (wrong == nullptr) return;
  fail(TILEFARM_VTA_UNSUPPORTED, "instruction %zu (%s): %s: %s", wrong->instruction,
       describe(instructions[wrong->instruction]).c_str(), wrong->rule.c_str(),
       wrong->text.c_str());
}

void Accelerator::execute(const std::vector<Instruction>& instructions, bool check_hazards) {
  if (check_hazards) hazards_.begin(instructions, tokens_);
  uops_ = 0;
  run_in_token_order(instructions, tokens_, [&](size_t index) {
    const Instruction& f = instructions[index];
    require_short(f);
    rules_.visit(index, f, functional_->uops(), functional_->acc());
    functional_->execute(f, dram_, counters_);
    if (check_hazards) hazards_.visit(index, functional_->uops());
  });
}

// A few words can ask for years of work.
void Accelerator::require_short(const Instruction& f) {
  if (!f.is_compute() || f.uop_begin >= f.uop_end) return;
  uops_ += f.executed_uops();
  if (uops_ <= uop_limit_) return;
  fail(TILEFARM_VTA_TOO_LONG, "%llu micro-ops by now, the limit is %llu",
       static_cast<unsigned long long>(uops_), static_cast<unsigned long long>(uop_limit_));
}

CycleResult Accelerator::time_of(const std::vector<Instruction>& instructions,
                                 const Tokens& tokens) const {
  const bool hls = config_.time_model == TimeModel::kHls;
  return hls ? estimate_hls_cycles(config_, instructions, tokens)
             : count_cycles(config_, instructions, tokens);
}

void Accelerator::add_timing(const CycleResult& timing) {
  counters_.cycles += timing.cycles;
  const auto& [load, compute, store] = timing.modules;
  counters_.load_busy_cycles += load.busy;
  counters_.compute_busy_cycles += compute.busy;
  counters_.store_busy_cycles += store.busy;
  counters_.load_token_stall_cycles += load.token;
  counters_.load_queue_stall_cycles += load.queue;
  counters_.load_memory_stall_cycles += load.memory;
  counters_.compute_token_stall_cycles += compute.token;
  counters_.compute_queue_stall_cycles += compute.queue;
  counters_.compute_memory_stall_cycles += compute.memory;
  counters_.store_token_stall_cycles += store.token;
  counters_.store_queue_stall_cycles += store.queue;
  counters_.store_memory_stall_cycles += store.memory;
}

// Runs follow one another on one axis of cycles.
void Accelerator::add_timeline(const CycleResult& timing,
                               const std::vector<Instruction>& instructions) {
  for (size_t k = 0; k < instructions.size(); ++k) {
    const Span& span = timing.spans[k];
    if (span.end == 0) continue;
    timeline_.push_back({counters_.cycles + span.begin, counters_.cycles + span.end,
                         instructions[k].module(), static_cast<uint32_t>(k),
                         describe(instructions[k])});
  }
}

void Accelerator::reset() {
  functional_->reset();
  rules_.reset();
  tokens_ = {};
}

bool Accelerator::tokens_left() const {
  return std::any_of(tokens_.begin(), tokens_.end(), [](uint64_t count) { return count != 0; });
}

std::string Accelerator::describe_tokens() const {
  std::string text;
  for (int q = 0; q < kTokenQueues; ++q) {
    if (tokens_[q] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(tokens_[q]) + " " + kTokenQueueNames[q];
  }
  return text;
}

void Accelerator::clear_counters() {
  counters_ = {};
  timeline_.clear();
  findings_.clear();
}

}  // namespace tilefarm
