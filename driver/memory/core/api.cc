// The C interface: from rows to a problem, and from its outcome to rows.

#include <algorithm>
#include <new>

#include "allocate/allocate.h"
#include "schedule/schedule_search.h"

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

// Schedules, and the rows that point into them.
struct Owner {
  Schedules found;
  std::vector<tilefarm_memory_schedule> rows;
};

void give(Schedules found, tilefarm_memory_schedules& result) {
  auto* owner = new Owner{std::move(found), {}};
  for (const Decoded& each : owner->found.best) {
    owner->rows.push_back({each.makespan, each.extra_nbytes, each.peak_nbytes,
                           static_cast<int64_t>(each.tokens.size()), each.tokens.data(),
                           static_cast<int64_t>(each.actions.size()), each.actions.data(),
                           static_cast<int64_t>(each.residencies.size()),
                           each.residencies.data()});
  }
  result = {owner->found.decoded, owner->found.is_cut_short,
            static_cast<int64_t>(owner->rows.size()), owner->rows.data(), owner};
}

}  // namespace

int32_t tilefarm_memory_interface(void) { return TILEFARM_MEMORY_INTERFACE; }

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

int32_t tilefarm_memory_schedule_search(const tilefarm_memory_instance* instance,
                                        const tilefarm_memory_lists* favourites,
                                        int64_t favourite_count,
                                        const tilefarm_memory_search_limits* limits,
                                        tilefarm_memory_schedules* result) {
  try {
    std::vector<Tokens> first;
    for (int64_t at = 0; at < favourite_count; at++) {
      first.emplace_back(favourites->items + favourites->first[at],
                         favourites->items + favourites->first[at + 1]);
    }
    give(search_schedules(read_instance(*instance), first, *limits), *result);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

int32_t tilefarm_memory_decode(const tilefarm_memory_instance* instance, const int64_t* token,
                               int64_t tokens, tilefarm_memory_schedules* result) {
  try {
    const Instance read = read_instance(*instance);
    Schedules found;
    found.decoded = 1;
    Decoded decoded;
    if (Decoder(read, false).decode({token, token + tokens}, 0, decoded)) {
      found.best.push_back(std::move(decoded));
    }
    give(std::move(found), *result);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

void tilefarm_memory_free(tilefarm_memory_schedules* result) {
  delete static_cast<Owner*>(result->owner);
  result->owner = nullptr;
}
