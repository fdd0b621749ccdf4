#include "call_filter.h"

#include <algorithm>
#include <cstddef>

namespace tilefarm::runner {
namespace {

constexpr ptrdiff_t kFew = 3;  // rules that are tried one after the other

sock_filter give(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// The low word; all architectures with rules are little endian.
sock_filter load_argument(int argument) {
  const size_t offset = offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument);
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

}  // namespace

void CallFilter::on(int call, uint32_t action) {
  rules_.push_back({static_cast<uint32_t>(call), {give(action)}});
}

void CallFilter::on_all(std::initializer_list<int> calls, uint32_t action) {
  for (int call : calls) on(call, action);
}

void CallFilter::on_bits(int call, int argument, uint32_t mask, uint32_t any, uint32_t none) {
  rules_.push_back({static_cast<uint32_t>(call),
                    {load_argument(argument), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
                     give(any), give(none)}});
}

void CallFilter::on_bits_with(int call, int argument, uint32_t mask,
                              const std::vector<std::pair<int, uint32_t>>& further, uint32_t both,
                              uint32_t other) {
  FilterProgram code = {load_argument(argument), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 1, 0),
                        give(other)};
  for (const auto& [where, bits] : further) {
    code.push_back(load_argument(where));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    code.push_back(give(both));
  }
  code.push_back(give(other));
  rules_.push_back({static_cast<uint32_t>(call), std::move(code)});
}

void CallFilter::on_any_of(int call, int argument, const std::vector<uint32_t>& values,
                           uint32_t any, uint32_t other) {
  FilterProgram code = {load_argument(argument)};
  for (uint32_t value : values) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    code.push_back(give(any));
  }
  code.push_back(give(other));
  rules_.push_back({static_cast<uint32_t>(call), std::move(code)});
}

FilterProgram CallFilter::program(uint32_t architecture, uint32_t foreign,
                                  uint32_t otherwise) const {
  FilterProgram code = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0),
      give(SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  if (foreign != 0) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, foreign, 0, 1));
    code.push_back(give(SECCOMP_RET_KILL_PROCESS));
  }
  std::vector<Rule> sorted = rules_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Rule& a, const Rule& b) { return a.call < b.call; });
  search(code, sorted.data(), sorted.data() + sorted.size(), otherwise);
  return code;
}

void CallFilter::search(FilterProgram& code, const Rule* begin, const Rule* end,
                        uint32_t otherwise) {
  if (end - begin <= kFew) {
    for (const Rule* rule = begin; rule != end; ++rule) {
      const auto length = static_cast<uint8_t>(rule->code.size());
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, length));
      code.insert(code.end(), rule->code.begin(), rule->code.end());
    }
    code.push_back(give(otherwise));
    return;
  }
  const Rule* middle = begin + (end - begin) / 2;
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, middle->call, 0, 1));
  const size_t jump = code.size();  // conditional ones reach 255 instructions, this one all
  code.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
  search(code, begin, middle, otherwise);
  code[jump].k = static_cast<uint32_t>(code.size() - jump - 1);
  search(code, middle, end, otherwise);
}

}  // namespace tilefarm::runner
