// Remembers the time of streams: cycles do not depend on data, so equal streams take equal cycles.
#ifndef TILEFARM_CYCLE_CYCLE_MEMO_H_
#define TILEFARM_CYCLE_CYCLE_MEMO_H_

#include <cstddef>
#include <list>
#include <vector>

#include "cycle_model.h"

namespace tilefarm {

// Keeps the most recently used streams, compared word by word, within a limit of instructions.
class CycleMemo {
 public:
  const CycleResult* find(const std::vector<Word>& words, const Tokens& tokens);
  const CycleResult& keep(const std::vector<Word>& words, const Tokens& tokens, CycleResult result);

 private:
  struct Entry {
    std::vector<Word> words;
    Tokens tokens;
    CycleResult result;
  };

  std::list<Entry> entries_;  // most recent first
  size_t instructions_ = 0;
};

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_CYCLE_MEMO_H_
