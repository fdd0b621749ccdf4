// From rows in bytes and moments to items in units and sections.

#include "problem.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace tilefarm::memory {
namespace {

// Buffers that need no bytes lie at 0 and are no part of the search; neither are fixed ones.
bool moves(const tilefarm_memory_problem& rows, int64_t row) {
  return rows.nbytes[row] > 0 && rows.fixed_offset[row] < 0;
}

std::vector<int64_t> moments(const tilefarm_memory_problem& rows) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (rows.nbytes[row] == 0) continue;
    for (int64_t at = rows.first_lifetime[row]; at < rows.first_lifetime[row + 1]; at++) {
      all.push_back(rows.lower[at]);
      all.push_back(rows.upper[at]);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<Range> ranges_of(const tilefarm_memory_problem& rows, int64_t row,
                             const std::vector<int64_t>& moments) {
  auto section = [&](int64_t moment) {
    return static_cast<int>(std::lower_bound(moments.begin(), moments.end(), moment) -
                            moments.begin());
  };
  std::vector<Range> ranges;
  for (int64_t at = rows.first_lifetime[row]; at < rows.first_lifetime[row + 1]; at++) {
    ranges.push_back({section(rows.lower[at]), section(rows.upper[at])});
  }
  return ranges;
}

struct Units {
  int64_t padding = 0;  // sizes are rounded up to it, because every offset is a multiple of it
  int64_t unit = 0;
};

// What all alignments and obstacles share pads sizes; what padded sizes share is the unit.
Units units_of(const tilefarm_memory_problem& rows) {
  int64_t padding = 0;
  int64_t edges = 0;
  for (int64_t at = 0; at < rows.reserved; at++) {
    edges = std::gcd(edges, std::gcd(rows.reserved_begin[at], rows.reserved_end[at]));
  }
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (rows.nbytes[row] == 0) continue;
    if (moves(rows, row)) {
      padding = std::gcd(padding, rows.alignment[row]);
    } else {
      const int64_t begin = rows.fixed_offset[row];
      edges = std::gcd(edges, std::gcd(begin, begin + rows.nbytes[row]));
    }
  }
  padding = std::max<int64_t>(std::gcd(padding, edges), 1);
  int64_t shared = edges;
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (moves(rows, row)) shared = std::gcd(shared, round_up(rows.nbytes[row], padding));
  }
  int64_t unit = std::max<int64_t>(shared, 1);
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (moves(rows, row) && unit % rows.alignment[row] != 0) {
      unit = std::gcd(unit, rows.alignment[row]);
    }
  }
  return {padding, unit};
}

void add_obstacles(const tilefarm_memory_problem& rows, const std::vector<int64_t>& moments,
                   Problem& problem) {
  problem.obstacles.resize(problem.sections);
  for (auto& section : problem.obstacles) {
    for (int64_t at = 0; at < rows.reserved; at++) {
      if (rows.reserved_begin[at] == rows.reserved_end[at]) continue;
      section.push_back(
          {rows.reserved_begin[at] / problem.unit, rows.reserved_end[at] / problem.unit});
    }
  }
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (rows.nbytes[row] == 0 || rows.fixed_offset[row] < 0) continue;
    const int64_t begin = rows.fixed_offset[row];
    const int64_t end = begin + rows.nbytes[row];
    problem.fixed_peak_nbytes = std::max(problem.fixed_peak_nbytes, end);
    for (const Range& range : ranges_of(rows, row, moments)) {
      for (int s = range.lo; s < range.hi; s++) {
        problem.obstacles[s].push_back({begin / problem.unit, end / problem.unit});
      }
    }
  }
  for (auto& section : problem.obstacles) {
    std::sort(section.begin(), section.end(),
              [](const Obstacle& a, const Obstacle& b) { return a.begin < b.begin; });
    problem.has_obstacles |= !section.empty();
    for (size_t at = 1; at < section.size(); at++) {
      problem.contradicts |= section[at].begin < section[at - 1].end;
    }
  }
}

// The topmost of the buffers alive at once needs no padding; the one with most may be it.
int64_t bound_of(const Problem& problem) {
  std::vector<int64_t> need(problem.sections, 0);
  std::vector<int64_t> pad(problem.sections, 0);
  for (const Item& item : problem.items) {
    for (const Range& range : item.ranges) {
      for (int s = range.lo; s < range.hi; s++) {
        need[s] += item.size * problem.unit;
        pad[s] = std::max(pad[s], item.size * problem.unit - item.nbytes);
      }
    }
  }
  int64_t bound = problem.fixed_peak_nbytes;
  for (int s = 0; s < problem.sections; s++) {
    int64_t top = need[s] - pad[s];
    for (const Obstacle& obstacle : problem.obstacles[s]) {
      if (obstacle.begin * problem.unit >= top) break;
      top += (obstacle.end - obstacle.begin) * problem.unit;
    }
    if (need[s]) bound = std::max(bound, top);
  }
  return bound;
}

void name_kinds(std::vector<Item>& items) {
  using Key = std::tuple<int64_t, int64_t, std::vector<std::pair<int, int>>>;
  std::map<Key, int> kinds;
  for (Item& item : items) {
    std::vector<std::pair<int, int>> ranges;
    for (const Range& range : item.ranges) ranges.emplace_back(range.lo, range.hi);
    const Key key{item.nbytes, item.alignment, ranges};
    item.kind = kinds.emplace(key, static_cast<int>(kinds.size())).first->second;
  }
}

}  // namespace

Problem read_problem(const tilefarm_memory_problem& rows) {
  const std::vector<int64_t> times = moments(rows);
  const Units units = units_of(rows);
  Problem problem;
  problem.sections = times.empty() ? 0 : static_cast<int>(times.size()) - 1;
  problem.unit = units.unit;
  for (int64_t row = 0; row < rows.buffers; row++) {
    if (!moves(rows, row)) continue;
    const int64_t alignment =
        units.unit % rows.alignment[row] == 0 ? 1 : rows.alignment[row] / units.unit;
    problem.items.push_back({row, rows.nbytes[row],
                             round_up(rows.nbytes[row], units.padding) / units.unit, alignment,
                             ranges_of(rows, row, times), 0});
  }
  add_obstacles(rows, times, problem);
  name_kinds(problem.items);
  problem.bound_nbytes = bound_of(problem);
  return problem;
}

}  // namespace tilefarm::memory
