// What a search begins with: orders as given and by the longest path to the end, each with loads
// begun earlier and earlier.

#ifndef TILEFARM_MEMORY_SCHEDULE_SEQUENCES_H_
#define TILEFARM_MEMORY_SCHEDULE_SEQUENCES_H_

#include <vector>

#include "decoder.h"
#include "instance.h"
#include "random.h"

namespace tilefarm::memory {

std::vector<Tokens> first_sequences(const Instance& instance);

// Any order, with loads ahead of their users.
Tokens random_sequence(const Instance& instance, Random& random);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_SEQUENCES_H_
