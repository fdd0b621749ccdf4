// The C interface: from rows to a problem, and from its outcome to rows.

#include <algorithm>
#include <new>

#include "allocate.h"

namespace {

using namespace tilefarm::memory;

void answer(const tilefarm_memory_problem& rows, const tilefarm_memory_limits& limits,
            int64_t* offsets, tilefarm_memory_result& result) {
  const Problem problem = read_problem(rows);
  const Outcome outcome = allocate(problem, limits);
  result.status = outcome.status;
  result.peak_nbytes = outcome.peak_nbytes;
  result.bound_nbytes = outcome.bound_nbytes;
  result.nodes = outcome.nodes;
  result.is_optimal =
      outcome.status == TILEFARM_MEMORY_FOUND && outcome.peak_nbytes <= outcome.bound_nbytes;
  if (outcome.status != TILEFARM_MEMORY_FOUND) return;
  for (int64_t row = 0; row < rows.buffers; row++) {
    offsets[row] = std::max<int64_t>(rows.fixed_offset[row], 0);
  }
  for (size_t i = 0; i < problem.items.size(); i++) {
    offsets[problem.items[i].row] = outcome.offsets[i] * problem.unit;
  }
}

}  // namespace

int32_t tilefarm_memory_allocate(const tilefarm_memory_problem* problem,
                                 const tilefarm_memory_limits* limits, int64_t* offsets,
                                 tilefarm_memory_result* result) {
  try {
    answer(*problem, *limits, offsets, *result);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
