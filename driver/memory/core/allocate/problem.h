// A problem in the search's words: time cut into sections, sizes in one unit, obstacles by section.

#ifndef TILEFARM_MEMORY_PROBLEM_H_
#define TILEFARM_MEMORY_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "tilefarm_memory.h"

namespace tilefarm::memory {

// Above every offset, and far enough from the end of 64 bits to add a size to.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 2;

// Sections [lo, hi) of time.
struct Range {
  int lo;
  int hi;
};

// A buffer that may be moved. Sizes and offsets count units; nbytes is the size without padding.
struct Item {
  int64_t row;
  int64_t nbytes;
  int64_t size;
  int64_t alignment;
  std::vector<Range> ranges;
  int kind;  // equal for items that could change places unnoticed
  int width() const {
    int sections = 0;
    for (const Range& range : ranges) sections += range.hi - range.lo;
    return sections;
  }
};

// Units [begin, end) that nothing may use during a section.
struct Obstacle {
  int64_t begin;
  int64_t end;
};

struct Problem {
  int sections = 0;
  int64_t unit = 1;  // bytes; every offset worth trying is a multiple of it
  std::vector<Item> items;
  std::vector<std::vector<Obstacle>> obstacles;  // by section, in the order of addresses, apart
  bool has_obstacles = false;
  int64_t fixed_peak_nbytes = 0;
  int64_t bound_nbytes = 0;  // the most bytes that any section needs
  bool contradicts = false;  // two fixed buffers want the same bytes at once

  // The highest offset of an item that ends within a capacity; negative: there is none.
  int64_t highest(const Item& item, int64_t capacity_nbytes) const {
    return capacity_nbytes < item.nbytes ? -1 : (capacity_nbytes - item.nbytes) / unit;
  }
  int64_t end_nbytes(const Item& item, int64_t offset) const { return offset * unit + item.nbytes; }
};

Problem read_problem(const tilefarm_memory_problem& rows);

inline int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_PROBLEM_H_
