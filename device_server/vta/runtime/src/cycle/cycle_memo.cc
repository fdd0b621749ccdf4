#include "cycle_memo.h"

#include <utility>

namespace tilefarm {
namespace {

// Multipliers and rotations of xxHash64 and of SplitMix64. A step is reversible for every word, so
// streams of one length that differ in one word always differ.
void mix(CycleMemo::Key& key, uint64_t word) {
  auto& [a, b] = key;
  a = (a ^ word * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B185EBCA87ull;
  a ^= a >> 29;
  b = (b + word) * 0xBF58476D1CE4E5B9ull;
  b ^= b >> 32;
}

}  // namespace

CycleMemo::Key CycleMemo::key_of(const std::vector<Word>& words, const Tokens& tokens) {
  Key key = {words.size(), ~uint64_t{words.size()}};
  for (const uint64_t count : tokens) mix(key, count);
  for (const Word& word : words) {
    mix(key, word.lo);
    mix(key, word.hi);
  }
  return key;
}

const CycleResult* CycleMemo::find(const Key& key) const {
  const auto found = results_.find(key);
  return found == results_.end() ? nullptr : &found->second;
}

const CycleResult& CycleMemo::keep(const Key& key, CycleResult result) {
  if (results_.size() >= kMostStreams) results_.clear();
  result.spans = {};
  return results_[key] = std::move(result);
}

}  // namespace tilefarm
