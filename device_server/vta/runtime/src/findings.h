// What would go wrong on a chosen hardware: collected during runs, never thrown.
#ifndef TILEFARM_FINDINGS_H_
#define TILEFARM_FINDINGS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace tilefarm {

enum class Severity { kWarning = 1, kError = 2 };

struct Finding {
  Severity severity = Severity::kWarning;
  std::string rule;  // a short name
  size_t instruction = 0;
  std::string text;
};

class Findings {
 public:
  // Keeps one finding per rule and instruction, and the first kMostPerRule of a rule.
  void add(Severity severity, const char* rule, size_t instruction, const std::string& text);

  void begin_run();
  const Finding* first_error() const;  // of this run, null if there is none
  const std::vector<Finding>& all() const { return all_; }
  void clear();

  static constexpr int kMostPerRule = 16;

 private:
  struct Seen {
    int count = 0;
    size_t instruction = 0;
  };

  std::vector<Finding> all_;
  std::map<std::string, Seen> seen_;  // in this run
  Finding first_error_;
  bool has_error_ = false;
};

}  // namespace tilefarm

#endif  // TILEFARM_FINDINGS_H_
