// Restarts with growing numbers of nodes and orders in turn; the clock only ends them.

#include "allocate.h"

#include <algorithm>

namespace tilefarm::memory {
namespace {

constexpr uint64_t kNodes = 1000;  // of the shortest try
constexpr int kKeys = 3;           // size, width, area
// How far orders of restarts stray from their key, in turn. The first tries do not.
constexpr double kNoises[] = {0.0, 0.5, 1.0, 1.5};
constexpr int kClimbs = 64;  // of up to half a millisecond each
constexpr size_t kMostClimbed = 512;
constexpr uint64_t kRoundsBeforeClimb = 4;  // the search ends most that end at all

// 1 1 2 1 1 2 4 ...: Luby, Sinclair and Zuckerman, 1993.
uint64_t luby(uint64_t i) {
  uint64_t whole = 1;
  while (whole < i) whole = 2 * whole + 1;
  if (whole == i) return (whole + 1) / 2;
  return luby(i - whole / 2);
}

class Portfolio {
 public:
  Portfolio(const Problem& problem, const tilefarm_memory_limits& limits)
      : problem_(problem), given_(limits), limits_(limits), search_(problem, limits_) {
    is_bounded_ = limits.capacity_nbytes >= 0;
    outcome_.bound_nbytes = problem.bound_nbytes;
  }

  Outcome run() {
    if (problem_.contradicts || misses_capacity(outcome_.bound_nbytes)) {
      return ended(TILEFARM_MEMORY_INFEASIBLE);
    }
    pack_in_orders();
    if (is_bounded_ && !is_good_enough() && !fit()) return outcome_;
    if (!is_bounded_ || given_.smallest) shrink();
    return ended(TILEFARM_MEMORY_FOUND);
  }

 private:
  bool misses_capacity(int64_t nbytes) const {
    return is_bounded_ && nbytes > given_.capacity_nbytes;
  }
  bool is_good_enough() const {
    if (outcome_.offsets.empty() && !problem_.items.empty()) return false;
    const bool is_smallest = outcome_.peak_nbytes <= outcome_.bound_nbytes;
    return is_smallest ||
           (is_bounded_ && !given_.smallest && !misses_capacity(outcome_.peak_nbytes));
  }
  bool is_over() const { return search_.nodes() >= given_.nodes || limits_.over(); }

  Outcome ended(tilefarm_memory_status status) {
    outcome_.status = status;
    outcome_.nodes = search_.nodes();
    return outcome_;
  }

  bool keep_better(const Offsets& offsets) {
    const int64_t peak = peak_nbytes(problem_, offsets);
    if (!outcome_.offsets.empty() && peak >= outcome_.peak_nbytes) return false;
    outcome_.offsets = offsets;
    outcome_.peak_nbytes = peak;
    return true;
  }

  void pack_in_orders() {
    outcome_.peak_nbytes = problem_.fixed_peak_nbytes;
    for (int each = 0; each < kOrders && !is_good_enough() && !(each && limits_.over()); each++) {
      std::vector<int> order = packing_order(problem_, each);
      Offsets offsets;
      pack(problem_, order, offsets);
      if (keep_better(offsets)) order_ = order;
    }
  }

  // Brings an item that ends at the peak to the front, as TVM's USMP hill climb does.
  void climb() {
    if (problem_.items.size() > kMostClimbed) return;
    std::vector<int> order = order_;
    Offsets offsets = outcome_.offsets;
    for (int tries = 0; tries < kClimbs && !is_good_enough(); tries++) {
      const int64_t peak = peak_nbytes(problem_, offsets);
      const auto high = std::find_if(order.begin(), order.end(), [&](int i) {
        return problem_.end_nbytes(problem_.items[i], offsets[i]) == peak;
      });
      if (high == order.end() || high == order.begin()) return;
      std::rotate(order.begin() + tries % (high - order.begin()), high, high + 1);
      pack(problem_, order, offsets);
      keep_better(offsets);
    }
  }

  // One try for a peak; raises the bound where there is none.
  Found attempt(int64_t capacity_nbytes, uint64_t round) {
    const uint64_t turn = round % (kKeys * std::size(kNoises));
    const Order order{static_cast<int>(turn % kKeys), kNoises[turn / kKeys],
                      given_.seed * 0x9e3779b97f4a7c15ULL + round};
    const Found found = search_.find(capacity_nbytes, order, kNodes * luby(round + 1));
    if (found == Found::kYes) keep_better(search_.offsets());
    if (found == Found::kNo) outcome_.bound_nbytes = above(capacity_nbytes);
    return found;
  }

  // The smallest peak above one that cannot be: some item ends at it.
  int64_t above(int64_t capacity_nbytes) const {
    int64_t next = kNever;
    for (const Item& item : problem_.items) {
      const int64_t highest = problem_.highest(item, capacity_nbytes);
      next = std::min(next, problem_.end_nbytes(item, highest + 1));
    }
    return std::max(next, outcome_.bound_nbytes);
  }

  bool fit() {
    for (uint64_t round = 0; !is_over(); round++) {
      const Found found = attempt(given_.capacity_nbytes, round);
      if (found == Found::kYes) return true;
      if (found == Found::kNo) {
        ended(TILEFARM_MEMORY_INFEASIBLE);
        return false;
      }
    }
    ended(TILEFARM_MEMORY_NOT_FOUND);
    return false;
  }

  // Tries the bound itself, and what lies halfway between it and the best that is known, in turns.
  void shrink() {
    for (uint64_t round = 0; outcome_.peak_nbytes > outcome_.bound_nbytes && !is_over(); round++) {
      if (round == kRoundsBeforeClimb) climb();
      const Found at_bound = attempt(outcome_.bound_nbytes, round);
      const int64_t gap = outcome_.peak_nbytes - outcome_.bound_nbytes;
      if (at_bound != Found::kUnknown || gap <= problem_.unit) continue;
      // Nearer to the best each time that halfway is not found.
      const int64_t step = std::max(gap >> std::min<uint64_t>(1 + misses_, 62), problem_.unit);
      misses_ =
          attempt(outcome_.peak_nbytes - step, round) == Found::kUnknown ? (misses_ + 1) % 8 : 0;
    }
  }

  const Problem& problem_;
  const tilefarm_memory_limits& given_;
  const Limits limits_;
  Search search_;
  Outcome outcome_;
  std::vector<int> order_;
  bool is_bounded_ = false;
  uint64_t misses_ = 0;
};

}  // namespace

Outcome allocate(const Problem& problem, const tilefarm_memory_limits& limits) {
  return Portfolio(problem, limits).run();
}

}  // namespace tilefarm::memory
