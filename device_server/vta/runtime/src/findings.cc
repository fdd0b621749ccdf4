#include "findings.h"

namespace tilefarm {

void Findings::add(Severity severity, const char* rule, size_t instruction,
                   const std::string& text) {
  Seen& seen = seen_[rule];
  const bool again = seen.count > 0 && seen.instruction == instruction;
  if (again || seen.count == kMostPerRule) return;
  seen = {seen.count + 1, instruction};
  all_.push_back({severity, rule, instruction, text});
  if (severity != Severity::kError || has_error_) return;
  has_error_ = true;
  first_error_ = all_.back();
}

void Findings::begin_run() {
  seen_.clear();
  has_error_ = false;
}

const Finding* Findings::first_error() const { return has_error_ ? &first_error_ : nullptr; }

void Findings::clear() {
  all_.clear();
  begin_run();
}

}  // namespace tilefarm
