#include "cycle_memo.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tilefarm {
namespace {

constexpr size_t kMaxInstructions = size_t{1} << 20;

bool same(const std::vector<Word>& a, const std::vector<Word>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Word)) == 0;
}

}  // namespace

const CycleResult* CycleMemo::find(const std::vector<Word>& words, const Tokens& tokens) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.tokens == tokens && same(e.words, words);
  });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front().result;
}

const CycleResult& CycleMemo::keep(const std::vector<Word>& words, const Tokens& tokens,
                                   CycleResult result) {
  entries_.push_front({words, tokens, std::move(result)});
  instructions_ += words.size();
  while (instructions_ > kMaxInstructions && entries_.size() > 1) {
    instructions_ -= entries_.back().words.size();
    entries_.pop_back();
  }
  return entries_.front().result;
}

}  // namespace tilefarm
