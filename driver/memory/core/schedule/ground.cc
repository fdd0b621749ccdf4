// Gaps are found by walking over what is taken: few buffers are in a memory at once.

#include "ground.h"

#include <algorithm>
#include <limits>

namespace tilefarm::memory {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 2;

int64_t up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

Ground::Ground(const Instance& instance, int memory) {
  const MemoryRoom& room = instance.memories[memory];
  end_ = room.end ? room.end : kEndless;
  blocks_ = room.reserved;
  int64_t largest = 0;
  for (const WholeBuffer& each : instance.buffers) {
    if (each.memory != memory || each.nbytes == 0) continue;
    largest = std::max(largest, each.nbytes);
    if (each.pinned_at >= 0) pins_.emplace_back(each.pinned_at, each.pinned_at + each.nbytes);
  }
  large_nbytes_ = largest / 3;
  std::sort(pins_.begin(), pins_.end());
}

bool Ground::take(int64_t begin, int64_t end) {
  const auto after = std::lower_bound(blocks_.begin(), blocks_.end(), Block{begin, begin});
  if (after != blocks_.end() && after->first < end) return false;
  if (after != blocks_.begin() && std::prev(after)->second > begin) return false;
  blocks_.insert(after, {begin, end});
  return true;
}

int64_t Ground::place(const WholeBuffer& buffer, bool is_low) {
  if (buffer.nbytes == 0) return std::max<int64_t>(buffer.pinned_at, 0);
  if (buffer.pinned_at >= 0) {
    const int64_t end = buffer.pinned_at + buffer.nbytes;
    return end <= end_ && take(buffer.pinned_at, end) ? buffer.pinned_at : -1;
  }
  is_low |= end_ == kEndless;
  int64_t best = -1;
  int64_t best_gap = kEndless + 1;
  int64_t at = 0;
  auto pin = pins_.begin();
  auto try_gap = [&](int64_t begin, int64_t end) {
    const int64_t offset = is_low ? up(begin, buffer.alignment)
                                  : (end - buffer.nbytes) / buffer.alignment * buffer.alignment;
    if (offset < begin || offset + buffer.nbytes > end || end - begin >= best_gap) return;
    best = offset;
    best_gap = end - begin;
  };
  auto walk_to = [&](int64_t begin, int64_t end) {
    for (; pin != pins_.end() && pin->first < begin; pin++) {
      if (pin->first > at) try_gap(at, pin->first);
      at = std::max(at, pin->second);
    }
    if (begin > at) try_gap(at, begin);
    at = std::max(at, end);
  };
  for (const Block& block : blocks_) walk_to(block.first, block.second);
  walk_to(end_, end_);
  if (best >= 0) take(best, best + buffer.nbytes);
  return best;
}

void Ground::free(const WholeBuffer& buffer, int64_t offset) {
  if (buffer.nbytes == 0) return;
  blocks_.erase(std::lower_bound(blocks_.begin(), blocks_.end(), Block{offset, offset}));
}

}  // namespace tilefarm::memory
