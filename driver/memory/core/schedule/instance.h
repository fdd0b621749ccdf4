// What is scheduled, by numbers: steps on engines, and the buffers that they use.

#ifndef TILEFARM_MEMORY_SCHEDULE_INSTANCE_H_
#define TILEFARM_MEMORY_SCHEDULE_INSTANCE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tilefarm_memory.h"

namespace tilefarm::memory {

using Numbers = std::vector<int>;

struct Step {
  int engine;
  int64_t ticks;
  bool takes_all;
  Numbers before;  // steps that end before it begins
  Numbers behind;  // steps that begin no later
  Numbers uses;    // buffers
  Numbers changes;
  std::vector<std::pair<int, int>> in_place;  // operands and results that may have their bytes
  Numbers after;  // steps that this one is before or behind

  bool is_load() const { return before.empty() && changes.empty(); }
};

struct Cost {
  int engine;  // -1: it cannot be
  int64_t ticks;
};

struct WholeBuffer {
  int64_t nbytes;
  int64_t aligned_nbytes;
  int64_t alignment;
  int64_t pinned_at;  // -1: anywhere
  int memory;
  bool is_present;
  bool is_kept;
  Cost save;
  Cost read;
  int remade_by;  // the step that may run again to bring it back; -1: none
  Numbers users;

  bool may_be_saved() const { return save.engine >= 0 && read.engine >= 0; }
  bool may_leave() const { return may_be_saved() || remade_by >= 0; }
};

struct MemoryRoom {
  int64_t capacity;   // bytes that count; 0: endless
  int64_t end;        // of its addresses; 0: endless
  std::vector<std::pair<int64_t, int64_t>> reserved;  // [begin, end), by address
};

struct Instance {
  std::vector<Step> steps;
  std::vector<WholeBuffer> buffers;
  Numbers instances;  // by engine
  int64_t barriers;   // of what runs at a time; 0: endless
  std::vector<MemoryRoom> memories;
};

Instance read_instance(const tilefarm_memory_instance& rows);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_INSTANCE_H_
