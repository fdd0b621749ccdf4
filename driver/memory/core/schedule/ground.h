// The addresses of one memory while a schedule is decoded: who lies where now.

#ifndef TILEFARM_MEMORY_SCHEDULE_GROUND_H_
#define TILEFARM_MEMORY_SCHEDULE_GROUND_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "instance.h"

namespace tilefarm::memory {

class Ground {
 public:
  Ground(const Instance& instance, int memory);

  // Gives a buffer the smallest gap that it fits into, the low or the high end of it: its offset, or
  // -1.
  int64_t place(const WholeBuffer& buffer, bool is_low);
  bool is_large(const WholeBuffer& buffer) const { return buffer.nbytes >= large_nbytes_; }
  void free(const WholeBuffer& buffer, int64_t offset);

 private:
  using Block = std::pair<int64_t, int64_t>;
  bool take(int64_t begin, int64_t end);

  int64_t end_;
  int64_t large_nbytes_ = 0;
  std::vector<Block> pins_;    // only for those that are pinned there
  std::vector<Block> blocks_;  // taken, by address, apart; reserved bytes among them
};

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_GROUND_H_
