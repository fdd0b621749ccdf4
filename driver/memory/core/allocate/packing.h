// Packing: items in an order of importance, each at the lowest address that is free.

#ifndef TILEFARM_MEMORY_PACKING_H_
#define TILEFARM_MEMORY_PACKING_H_

#include <cstdint>
#include <vector>

#include "problem.h"

namespace tilefarm::memory {

using Offsets = std::vector<int64_t>;  // in units, one for each item

// Orders worth trying: largest, longest, widest (size x life), earliest first.
constexpr int kOrders = 4;
std::vector<int> packing_order(const Problem& problem, int order);

// What is packed is placed in `offsets`, whose former values do not matter.
void pack(const Problem& problem, const std::vector<int>& order, Offsets& offsets);

// The first address above everything that is placed, fixed buffers included.
int64_t peak_nbytes(const Problem& problem, const Offsets& offsets);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_PACKING_H_
