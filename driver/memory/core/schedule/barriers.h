// How much runs at a time, where only so many signals may be live at once.

#ifndef TILEFARM_MEMORY_SCHEDULE_BARRIERS_H_
#define TILEFARM_MEMORY_SCHEDULE_BARRIERS_H_

#include <cstdint>
#include <iterator>
#include <map>

namespace tilefarm::memory {

class Barriers {
 public:
  // 0: as many as it takes.
  explicit Barriers(int64_t count) : count_(count) { clear(); }

  void clear() { held_ = {{0, 0}}; }

  // From when on, no sooner than `begin`, one is free for so long.
  int64_t earliest(int64_t begin, int64_t ticks) const {
    if (count_ == 0) return begin;
    for (auto at = std::prev(held_.upper_bound(begin));
         at != held_.end() && at->first < begin + ticks; at++) {
      if (at->second >= count_) begin = std::next(at)->first;  // the last row has all free
    }
    return begin;
  }

  void hold(int64_t begin, int64_t end) {
    if (count_ == 0) return;
    const auto last = cut(end);
    for (auto at = cut(begin); at != last; at++) at->second++;
  }

 private:
  std::map<int64_t, int64_t>::iterator cut(int64_t tick) {
    const auto at = std::prev(held_.upper_bound(tick));
    return held_.emplace(tick, at->second).first;
  }

  const int64_t count_;
  std::map<int64_t, int64_t> held_;  // from a tick on to the next
};

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_BARRIERS_H_
