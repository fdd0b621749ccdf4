// A portfolio: packing first, the exact search where it misses the bound, in restarts.

#ifndef TILEFARM_MEMORY_ALLOCATE_H_
#define TILEFARM_MEMORY_ALLOCATE_H_

#include "packing.h"
#include "problem.h"
#include "search.h"

namespace tilefarm::memory {

struct Outcome {
  tilefarm_memory_status status = TILEFARM_MEMORY_NOT_FOUND;
  Offsets offsets;
  int64_t peak_nbytes = 0;
  int64_t bound_nbytes = 0;
  uint64_t nodes = 0;
};

// Any placement within the capacity, or without one (or on request) that with the smallest peak.
Outcome allocate(const Problem& problem, const tilefarm_memory_limits& limits);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_ALLOCATE_H_
