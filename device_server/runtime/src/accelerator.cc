#include "accelerator.h"

#include <algorithm>

#include "describe.h"
#include "error.h"
#include "token_order.h"

namespace tilefarm {

Accelerator::Accelerator(const Config& config)
    : config_(config),
      encoding_(config_),
      dram_(config.burst_nbytes()),
      functional_(config_, encoding_),
      hazards_(config_) {}

void Accelerator::run(const std::vector<Word>& words) {
  std::vector<Instruction> instructions;
  instructions.reserve(words.size());
  for (const Word& word : words) instructions.push_back(encoding_.decode(word));
  const Tokens before = tokens_;
  const CycleResult* timing = config_.functional_only ? nullptr : memo_.find(words, before);
  const bool is_new = timing == nullptr && !config_.functional_only;
  execute(instructions, is_new);
  counters_.instructions += instructions.size();
  if (config_.functional_only) return;
  if (is_new) timing = &memo_.keep(words, before, count_cycles(config_, instructions, before));
  if (recording_) add_timeline(*timing, instructions);
  add_timing(*timing);
}

void Accelerator::execute(const std::vector<Instruction>& instructions, bool check_hazards) {
  if (check_hazards) hazards_.begin(instructions, tokens_);
  run_in_token_order(instructions, tokens_, [&](size_t index) {
    functional_.execute(instructions[index], dram_, counters_);
    if (check_hazards) hazards_.visit(index, functional_.uops());
  });
}

void Accelerator::add_timing(const CycleResult& timing) {
  counters_.cycles += timing.cycles;
  counters_.load_busy_cycles += timing.busy_cycles[0];
  counters_.compute_busy_cycles += timing.busy_cycles[1];
  counters_.store_busy_cycles += timing.busy_cycles[2];
}

// Runs follow one another on one axis of cycles.
void Accelerator::add_timeline(const CycleResult& timing,
                               const std::vector<Instruction>& instructions) {
  for (size_t k = 0; k < instructions.size(); ++k) {
    const Span& span = timing.spans[k];
    timeline_.push_back({counters_.cycles + span.begin, counters_.cycles + span.end,
                         instructions[k].module(), static_cast<uint32_t>(k),
                         describe(instructions[k])});
  }
}

void Accelerator::reset() {
  functional_.reset();
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
}

}  // namespace tilefarm
