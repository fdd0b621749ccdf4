// Remembers the time of streams: cycles do not depend on data, so equal streams take equal cycles.
#ifndef TILEFARM_CYCLE_CYCLE_MEMO_H_
#define TILEFARM_CYCLE_CYCLE_MEMO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cycle_model.h"

namespace tilefarm {

// Streams are known by 128 bits of their words and of the tokens before them. A large network has
// millions of instructions: their words, compared one by one, would be as large as its weights.
class CycleMemo {
 public:
  using Key = std::array<uint64_t, 2>;

  static Key key_of(const std::vector<Word>& words, const Tokens& tokens);

  const CycleResult* find(const Key& key) const;  // without spans; valid until the next `keep`
  const CycleResult& keep(const Key& key, CycleResult result);

  void forget() { results_.clear(); }

  static constexpr size_t kMostStreams = size_t{1} << 14;

 private:
  std::map<Key, CycleResult> results_;
};

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_CYCLE_MEMO_H_
