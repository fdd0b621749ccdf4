// Packing sees the whole life of what was placed before, where linear scan sees what is alive now.

#include "packing.h"

#include <algorithm>
#include <numeric>

namespace tilefarm::memory {
namespace {

bool meet(const Item& a, const Item& b) {
  for (const Range& x : a.ranges) {
    for (const Range& y : b.ranges) {
      if (x.lo < y.hi && y.lo < x.hi) return true;
    }
  }
  return false;
}

void add_obstacles(const Problem& problem, const Item& item, std::vector<Obstacle>& taken) {
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
  for (size_t at = 0; at < order.size(); at++) {
    const Item& item = problem.items[order[at]];
    taken.clear();
    add_obstacles(problem, item, taken);
    for (size_t before = 0; before < at; before++) {
      const int j = order[before];
      if (meet(item, problem.items[j])) {
        taken.push_back({offsets[j], offsets[j] + problem.items[j].size});
      }
    }
    offsets[order[at]] = lowest(item, taken);
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
