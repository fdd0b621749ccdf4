// Late acceptance: a change is taken if it is no worse than what was there some changes ago (Burke
// and Bykov, The late acceptance hill-climbing heuristic, 2017).

#include "schedule_search.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "changes.h"
#include "sequences.h"

namespace tilefarm::memory {
namespace {

constexpr int64_t kLeastFirsts = 4;  // of a problem so large that its tries are for none
constexpr size_t kKept = 8;          // schedules that may all be asked for addresses
// A third of the climbs begin with the best schedule so far, a third with the next best in turn, and
// a third with the best of some random orders.
constexpr int kClimbs = 24;
constexpr int64_t kRandom = 8;  // of a climb's tries, the share that looks for its begin
constexpr int kMemory = 10;  // changes that acceptance looks back

struct Kept {
  Decoded schedule;
  int style;
};

// The best schedules so far, each cost once.
class Pool {
 public:
  void add(const Decoded& found, int style) {
    const auto same = [&](const Kept& each) { return each.schedule.cost() == found.cost(); };
    if (std::any_of(kept.begin(), kept.end(), same)) return;
    if (kept.size() == kKept && kept.back().schedule.cost() <= found.cost()) return;
    if (kept.size() == kKept) kept.pop_back();
    const auto worse = std::find_if(kept.begin(), kept.end(), [&](const Kept& each) {
      return each.schedule.cost() > found.cost();
    });
    kept.insert(worse, {found, style});
  }
  std::vector<Kept> kept;
};

// What a climb goes by: the makespan, and a little how early everything ends. Makespans alone are
// the same for most changes, and say nothing of the way.
std::pair<double, int64_t> smooth(const Decoded& found) {
  double ends = 0;
  for (const auto& each : found.actions) ends += static_cast<double>(each.end);
  const auto count = static_cast<double>(found.actions.size());
  return {static_cast<double>(found.makespan) * count + ends, found.extra_nbytes};
}

class ScheduleSearch {
 public:
  ScheduleSearch(const Instance& instance, const tilefarm_memory_search_limits& limits)
      : instance_(instance),
        limits_(limits),
        end_(std::chrono::steady_clock::now() +
             std::chrono::microseconds(
                 static_cast<int64_t>(std::clamp(limits.seconds, 0.0, 1e9) * 1e6))),
        decoder_(instance, limits.is_placed != 0),
        random_(limits.seed) {}

  Schedules run(const std::vector<Tokens>& favourites) {
    look(favourites);
    return found_;
  }

 private:
  bool is_over() const {
    return (limits_.stop != nullptr && *limits_.stop != 0) ||
           std::chrono::steady_clock::now() >= end_;
  }

  // Whether nothing can be shorter, and nothing is moved that need not be.
  bool is_best() const {
    const Decoded& best = pool_.kept.front().schedule;
    return best.makespan <= limits_.bound && best.extra_nbytes == 0;
  }

  bool decode(const Tokens& tokens, int style, Decoded& found) {
    found_.decoded++;
    if (!decoder_.decode(tokens, style, found)) return false;
    pool_.add(found, style);
    return true;
  }

  void look(const std::vector<Tokens>& favourites) {
    std::vector<Tokens> sequences = favourites;
    for (Tokens& each : first_sequences(instance_)) sequences.push_back(std::move(each));
    const auto all = static_cast<int64_t>(sequences.size()) * decoder_.styles();
    const int64_t firsts = std::min(all, std::max(kLeastFirsts, limits_.tries / 2));
    bool ends = false;
    Decoded found;
    for (int64_t at = 0; at < firsts && !ends; at++) {
      const auto count = static_cast<int64_t>(sequences.size());
      decode(sequences[at % count], static_cast<int>(at / count), found);
      ends = ended();
    }
    const int64_t each = std::max<int64_t>(0, limits_.tries - all) / kClimbs;
    for (int turn = 0; turn < kClimbs && !ends && !pool_.kept.empty(); turn++) {
      switch (turn % 3) {
        case 0: ends = climb(pool_.kept.front(), each); break;
        case 1: ends = climb(pool_.kept[turn % pool_.kept.size()], each); break;
        default: ends = climb(random_start(each / kRandom), each - each / kRandom);
      }
    }
    for (Kept& kept : pool_.kept) found_.best.push_back(std::move(kept.schedule));
  }

  // Whether there is no more to look for, or no time.
  bool ended() {
    if (pool_.kept.empty()) return limits_.stop != nullptr && *limits_.stop != 0;
    if (is_best()) return true;
    found_.is_cut_short = is_over();
    return found_.is_cut_short;
  }

  Kept random_start(int64_t tries) {
    Kept best = pool_.kept.back();
    bool is_first = true;
    Decoded found;
    for (; tries > 0; tries--) {
      const int style = static_cast<int>(random_.below(decoder_.styles()));
      if (!decode(random_sequence(instance_, random_), style, found)) continue;
      if (is_first || smooth(found) < smooth(best.schedule)) best = {found, style};
      is_first = false;
    }
    return best;
  }

  bool climb(Kept start, int64_t tries) {
    Decoded now = std::move(start.schedule);
    auto mine = smooth(now);
    std::vector<std::pair<double, int64_t>> past(kMemory, mine);
    Decoded found;
    Tokens tokens;
    for (int64_t turn = 0; turn < tries && !now.tokens.empty(); turn++) {
      tokens = now.tokens;
      change(instance_, tokens, random_);
      auto& before = past[turn % kMemory];
      if (decode(tokens, start.style, found)) {
        if (const auto its = smooth(found); its <= std::max(before, mine)) {
          std::swap(now, found);
          mine = its;
        }
      }
      before = mine;
      if (ended()) return true;
    }
    return false;
  }

  const Instance& instance_;
  const tilefarm_memory_search_limits& limits_;
  const std::chrono::steady_clock::time_point end_;
  Decoder decoder_;
  Random random_;
  Pool pool_;
  Schedules found_;
};

}  // namespace

Schedules search_schedules(const Instance& instance, const std::vector<Tokens>& favourites,
                           const tilefarm_memory_search_limits& limits) {
  return ScheduleSearch(instance, limits).run(favourites);
}

}  // namespace tilefarm::memory
