// The search for a schedule: many first sequences, then small changes of the best of them.

#ifndef TILEFARM_MEMORY_SCHEDULE_SCHEDULE_SEARCH_H_
#define TILEFARM_MEMORY_SCHEDULE_SCHEDULE_SEARCH_H_

#include <vector>

#include "decoder.h"
#include "instance.h"

namespace tilefarm::memory {

struct Schedules {
  std::vector<Decoded> best;  // the best one first
  int64_t decoded = 0;
  bool is_cut_short = false;
};

Schedules search_schedules(const Instance& instance, const std::vector<Tokens>& favourites,
                           const tilefarm_memory_search_limits& limits);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_SCHEDULE_SEARCH_H_
