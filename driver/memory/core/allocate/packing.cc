// Packing sees the whole life of what was placed before, where linear scan sees what is alive now.

#include "packing.h"

#include <algorithm>
#include <numeric>

namespace tilefarm::memory {
namespace {

// Placed items by time: spans of sections have lists of those that reach into them, but those that
// reach into many are in one list for all.
class Placed {
 public:
  explicit Placed(const Problem& problem)
      : problem_(problem),
        span_(std::max(1, problem.sections / kSpans)),
        by_span_(problem.sections / span_ + 1),
        seen_(problem.items.size(), -1) {}

  void add(int item) {
    for (const Range& range : problem_.items[item].ranges) {
      const int first = range.lo / span_;
      const int last = (range.hi - 1) / span_;
      if (last - first >= kLong) {
        long_.push_back({item, range});
        continue;
      }
      for (int at = first; at <= last; at++) by_span_[at].push_back({item, range});
    }
  }

  // Calls `see` once with every placed item that lives while an item does.
  template <typename See>
  void each_beside(int item, See see) {
    for (const Range& range : problem_.items[item].ranges) {
      auto look = [&](const std::vector<Stay>& stays) {
        for (const Stay& stay : stays) {
          if (stay.range.lo < range.hi && range.lo < stay.range.hi && seen_[stay.item] != item) {
            seen_[stay.item] = item;
            see(stay.item);
          }
        }
      };
      for (int at = range.lo / span_; at <= (range.hi - 1) / span_; at++) look(by_span_[at]);
      look(long_);
    }
  }

 private:
  static constexpr int kSpans = 1024;
  static constexpr int kLong = 64;
  struct Stay {
    int item;
    Range range;
  };
  const Problem& problem_;
  int span_;
  std::vector<std::vector<Stay>> by_span_;
  std::vector<Stay> long_;
  std::vector<int> seen_;
};

void add_obstacles(const Problem& problem, const Item& item, std::vector<Obstacle>& taken) {
  if (!problem.has_obstacles) return;
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) {
      const auto& section = problem.obstacles[s];
      taken.insert(taken.end(), section.begin(), section.end());
    }
  }
}

int64_t lowest(const Item& item, std::vector<Obstacle>& taken) {
  std::sort(taken.begin(), taken.end(),
            [](const Obstacle& a, const Obstacle& b) { return a.begin < b.begin; });
  int64_t offset = 0;
  for (const Obstacle& each : taken) {
    if (offset + item.size > each.begin && offset < each.end) {
      offset = round_up(each.end, item.alignment);
    }
  }
  return offset;
}

}  // namespace

std::vector<int> packing_order(const Problem& problem, int order) {
  auto key = [&](int i) -> double {
    const Item& item = problem.items[i];
    switch (order) {
      case 0: return -static_cast<double>(item.size);
      case 1: return -item.width();
      case 2: return -static_cast<double>(item.size) * item.width();
      default: return item.ranges.front().lo;
    }
  };
  std::vector<int> found(problem.items.size());
  std::iota(found.begin(), found.end(), 0);
  std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
    const double x = key(a);
    const double y = key(b);
    return x != y ? x < y : problem.items[a].size > problem.items[b].size;
  });
  return found;
}

void pack(const Problem& problem, const std::vector<int>& order, Offsets& offsets) {
  offsets.assign(problem.items.size(), -1);
  std::vector<Obstacle> taken;
  Placed placed(problem);
  for (const int i : order) {
    const Item& item = problem.items[i];
    taken.clear();
    add_obstacles(problem, item, taken);
    placed.each_beside(
        i, [&](int j) { taken.push_back({offsets[j], offsets[j] + problem.items[j].size}); });
    offsets[i] = lowest(item, taken);
    placed.add(i);
  }
}

int64_t peak_nbytes(const Problem& problem, const Offsets& offsets) {
  int64_t peak = problem.fixed_peak_nbytes;
  for (size_t i = 0; i < offsets.size(); i++) {
    peak = std::max(peak, problem.end_nbytes(problem.items[i], offsets[i]));
  }
  return peak;
}

}  // namespace tilefarm::memory
