// A system-call filter as a value: rules on calls, made into a program that the kernel interprets.
#ifndef TILEFARM_RUNNER_CALL_FILTER_H_
#define TILEFARM_RUNNER_CALL_FILTER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tilefarm::runner {

using FilterProgram = std::vector<sock_filter>;

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kTrap = SECCOMP_RET_TRAP;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

// Says what becomes of which call, one rule a call. A binary search finds the rule: the kernel
// tries a filter on every number that there is when it is installed, in every child anew.
class CallFilter {
 public:
  void on(int call, uint32_t action);
  void on_all(std::initializer_list<int> calls, uint32_t action);

  // One action when any bit of `mask` is set in an argument, another when none is.
  void on_bits(int call, int argument, uint32_t mask, uint32_t any, uint32_t none);

  // One action when `mask` is set in an argument, and a bit of any of `further` in its own.
  void on_bits_with(int call, int argument, uint32_t mask,
                    const std::vector<std::pair<int, uint32_t>>& further, uint32_t both,
                    uint32_t other);

  // One action when an argument is one of `values`, of which there are 120 at most.
  void on_any_of(int call, int argument, const std::vector<uint32_t>& values, uint32_t any,
                 uint32_t other);

  // Kills who calls as another architecture does, or a number from `foreign` on, unless that is 0.
  FilterProgram program(uint32_t architecture, uint32_t foreign, uint32_t otherwise) const;

 private:
  struct Rule {
    uint32_t call;
    FilterProgram code;  // always returns
  };

  static void search(FilterProgram& code, const Rule* begin, const Rule* end, uint32_t otherwise);

  std::vector<Rule> rules_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_CALL_FILTER_H_
