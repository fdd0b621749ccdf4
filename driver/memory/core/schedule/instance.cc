// From rows to an instance.

#include "instance.h"

#include <algorithm>

namespace tilefarm::memory {
namespace {

Numbers list(const tilefarm_memory_lists& lists, int64_t row) {
  return {lists.items + lists.first[row], lists.items + lists.first[row + 1]};
}

std::vector<std::pair<int, int>> pairs(const Numbers& numbers) {
  std::vector<std::pair<int, int>> found;
  for (size_t at = 0; at < numbers.size(); at += 2) found.emplace_back(numbers[at], numbers[at + 1]);
  return found;
}

Step read_step(const tilefarm_memory_instance& rows, int64_t at) {
  return {static_cast<int>(rows.engine[at]),
          rows.ticks[at],
          rows.takes_all[at] != 0,
          list(rows.before, at),
          list(rows.behind, at),
          list(rows.uses, at),
          list(rows.changes, at),
          pairs(list(rows.in_place, at)),
          {}};
}

WholeBuffer read_buffer(const tilefarm_memory_instance& rows, int64_t at) {
  return {rows.nbytes[at],
          rows.aligned_nbytes[at],
          rows.alignment[at],
          rows.pinned_at[at],
          static_cast<int>(rows.memory[at]),
          rows.is_present[at] != 0,
          rows.is_kept[at] != 0,
          {static_cast<int>(rows.save_engine[at]), rows.save_ticks[at]},
          {static_cast<int>(rows.read_engine[at]), rows.read_ticks[at]},
          static_cast<int>(rows.remade_by[at]),
          {}};
}

MemoryRoom read_memory(const tilefarm_memory_instance& rows, int64_t at) {
  MemoryRoom room{rows.capacity[at], rows.end[at], {}};
  for (int64_t row = rows.first_reserved[at]; row < rows.first_reserved[at + 1]; row++) {
    room.reserved.emplace_back(rows.reserved_begin[row], rows.reserved_end[row]);
  }
  std::sort(room.reserved.begin(), room.reserved.end());
  return room;
}

}  // namespace

Instance read_instance(const tilefarm_memory_instance& rows) {
  Instance made{};
  made.barriers = rows.barriers;
  for (int64_t at = 0; at < rows.steps; at++) made.steps.push_back(read_step(rows, at));
  for (int64_t at = 0; at < rows.buffers; at++) made.buffers.push_back(read_buffer(rows, at));
  made.instances.assign(rows.instances, rows.instances + rows.engines);
  for (int64_t at = 0; at < rows.memories; at++) made.memories.push_back(read_memory(rows, at));
  for (int at = 0; at < static_cast<int>(rows.steps); at++) {
    Numbers earlier = made.steps[at].before;
    earlier.insert(earlier.end(), made.steps[at].behind.begin(), made.steps[at].behind.end());
    std::sort(earlier.begin(), earlier.end());
    earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
    for (const int each : earlier) made.steps[each].after.push_back(at);
    for (const int each : made.steps[at].uses) made.buffers[each].users.push_back(at);
  }
  return made;
}

}  // namespace tilefarm::memory
