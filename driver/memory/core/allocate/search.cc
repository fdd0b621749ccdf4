// Depth first over skylines; see the header.

#include "search.h"

#include <algorithm>

namespace tilefarm::memory {
namespace {

// A decision is three frames of 350 bytes together (GCC 12, -O3): with this many half of a thread's
// usual stack of 8 MiB is taken. A try that goes deeper ends without an answer.
constexpr int kDeepest = 12000;
constexpr uint64_t kBetweenClocks = 256;  // nodes; a node takes 0.2 to 20 microseconds
constexpr double kRemembered = 0.5;       // of a weight after a restart; 0.2 and 1 are slower
constexpr size_t kSmallestTable = 1 << 10;
constexpr size_t kLargestTable = 1 << 22;  // 32 MiB

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double uniform(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  return static_cast<double>(mix(state) >> 11) * 0x1p-53;
}

}  // namespace

Limits::Limits(const tilefarm_memory_limits& limits)
    : nodes_(limits.nodes),
      end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(limits.seconds))),
      stop_(limits.stop) {}

bool Limits::over() const {
  if (stop_ != nullptr && *static_cast<const volatile int32_t*>(stop_) != 0) return true;
  return std::chrono::steady_clock::now() >= end_;
}

bool Limits::reached(uint64_t nodes) const {
  return nodes >= nodes_ || (nodes % kBetweenClocks == 0 && over());
}

Search::Search(const Problem& problem, const Limits& limits) : problem_(problem), limits_(limits) {
  const size_t sections = problem.sections;
  starts_.resize(sections + 1);
  ends_.resize(sections + 1);
  for (size_t i = 0; i < problem.items.size(); i++) {
    const Item& item = problem.items[i];
    for (const Range& range : item.ranges) {
      starts_[range.lo].push_back({static_cast<int>(i), range});
      ends_[range.hi].push_back({static_cast<int>(i), range});
    }
    has_pads_ |= item.size * problem.unit != item.nbytes;
    is_plain_ &= item.ranges.size() == 1 && item.alignment == 1;
    name_.push_back(mix(i + 1));
  }
  for (const auto& section : problem.obstacles) has_obstacles_ |= !section.empty();
  is_plain_ &= !has_obstacles_;
  highest_.resize(problem.items.size());
  weight_.assign(sections, 1.0);
  hash_.assign(sections, 0);
  failed_.assign(kSmallestTable, 0);
}

Found Search::find(int64_t capacity_nbytes, const Order& order, uint64_t nodes) {
  make_room();
  begin(capacity_nbytes);
  set_order(order);
  end_nodes_ = nodes_ + nodes;
  for (size_t i = 0; i < highest_.size(); i++) {
    if (highest_[i] < 0) return Found::kNo;
  }
  for (int s = 0; s < problem_.sections; s++) {
    if (count_[s] && slack(s) < 0) return Found::kNo;
  }
  return solve(0, problem_.sections);
}

// Everything is unplaced again.
void Search::begin(int64_t capacity_nbytes) {
  const size_t sections = problem_.sections;
  const size_t items = problem_.items.size();
  capacity_nbytes_ = capacity_nbytes;
  capacity_ = capacity_nbytes / problem_.unit;
  if (has_pads_) {
    capacity_ = 0;
    for (size_t i = 0; i < items; i++) {
      const Item& item = problem_.items[i];
      capacity_ = std::max(capacity_, problem_.highest(item, capacity_nbytes) + item.size);
    }
  }
  floor_.assign(sections, 0);
  base_.assign(sections, 0);
  full_.assign(sections, 1.0);
  left_.assign(sections, 0);
  count_.assign(sections, 0);
  obstacle_.assign(sections, 0);
  crossing_.assign(sections + 1, 0);
  spanning_.assign(sections + 1, 0);
  is_placed_.assign(items, 0);
  offset_.assign(items, -1);
  changes_.clear();
  placed_order_.clear();
  candidates_.clear();
  parts_.clear();
  depth_ = 0;
  for (size_t i = 0; i < items; i++) {
    const Item& item = problem_.items[i];
    highest_[i] = problem_.highest(item, capacity_nbytes);
    for (int t = item.ranges.front().lo + 1; t < item.ranges.back().hi; t++) spanning_[t]++;
    for (const Range& range : item.ranges) {
      for (int s = range.lo; s < range.hi; s++) {
        left_[s] += item.size;
        count_[s]++;
        crossing_[s] += s > range.lo;
      }
    }
  }
  for (int s = 0; s < problem_.sections; s++) {
    for (const Obstacle& each : problem_.obstacles[s]) {
      if (each.begin < capacity_) left_[s] += std::min(each.end, capacity_) - each.begin;
    }
    if (count_[s]) {
      full_[s] = static_cast<double>(left_[s]) / static_cast<double>(capacity_);
      take_obstacles(s);
    } else {
      floor_[s] = base_[s] = kNever;
    }
    rehash(s);
  }
}

void Search::set_order(const Order& order) {
  // What failed long ago counts less: otherwise all restarts end up at the same edges.
  for (double& weight : weight_) weight = 1 + (weight - 1) * kRemembered;
  uint64_t random = order.seed;
  key_.resize(problem_.items.size());
  for (size_t i = 0; i < key_.size(); i++) {
    const Item& item = problem_.items[i];
    const auto size = static_cast<double>(item.size);
    const auto width = static_cast<double>(item.width());
    const double area = size * width;
    const double by_width = width + size / (size + 1e6);
    const double key = order.by == 0 ? size : order.by == 1 ? by_width : area;
    key_[i] = key * (1 + order.noise * (uniform(random) - 0.5));
  }
}

// Searches what is left of [lo, hi) in parts that no unplaced item connects, small ones first.
Found Search::solve(int lo, int hi) {
  const size_t first = parts_.size();
  int begin = lo;
  for (int t = lo; t < hi; t++) {
    if (t + 1 < hi && spanning_[t + 1] != 0) continue;
    bool is_done = true;
    for (int s = begin; is_done && s <= t; s++) is_done = count_[s] == 0;
    if (!is_done) parts_.push_back({begin, t + 1});
    begin = t + 1;
  }
  const size_t last = parts_.size();
  std::sort(parts_.begin() + first, parts_.end(),
            [](Range a, Range b) { return a.hi - a.lo < b.hi - b.lo; });
  const Mark before = mark();
  Found found = Found::kYes;
  for (size_t at = first; at < last && found == Found::kYes; at++) {
    const Range part = parts_[at];
    found = solve_component(part.lo, part.hi);
  }
  parts_.resize(first);
  if (found != Found::kYes) undo(before);
  return found;
}

Found Search::solve_component(int lo, int hi) {
  nodes_++;
  if (nodes_ >= end_nodes_ || depth_ >= kDeepest || limits_.reached(nodes_)) return Found::kUnknown;
  const uint64_t state = hash(lo, hi);
  if (failed_before(state)) return Found::kNo;
  bool fails = false;
  const Edge edge = choose(lo, hi, fails);
  depth_++;
  const Found found = fails ? Found::kNo : branch(edge, lo, hi);
  depth_--;
  if (found == Found::kNo) remember(state);
  return found;
}

Found Search::branch(const Edge& edge, int lo, int hi) {
  const int64_t floor = floor_[edge.section];
  const size_t first = candidates_.size();
  for (const Cover& cover : covers(edge)) {
    if (!is_placed_[cover.item] && in_valley(cover, edge) && floor <= highest_[cover.item] &&
        (is_plain_ || lowest(problem_.items[cover.item]) == floor)) {
      candidates_.push_back(cover.item);
    }
  }
  const size_t last = candidates_.size();
  std::sort(candidates_.begin() + first, candidates_.end(),
            [this](int a, int b) { return key_[a] != key_[b] ? key_[a] > key_[b] : a < b; });
  const Mark before = mark();
  Found found = Found::kNo;
  for (size_t at = first; at < last && found == Found::kNo; at++) {
    const int kind = problem_.items[candidates_[at]].kind;
    const bool is_tried =
        std::any_of(candidates_.begin() + first, candidates_.begin() + at,
                    [&](int other) { return problem_.items[other].kind == kind; });
    if (is_tried) continue;
    place(candidates_[at], floor);
    found = solve(lo, hi);
    if (found != Found::kYes) undo(before);
  }
  candidates_.resize(first);
  return found == Found::kNo ? raised(edge, lo, hi) : found;
}

// Nothing covers the edge at its floor.
Found Search::raised(const Edge& edge, int lo, int hi) {
  const int s = edge.section;
  const int64_t floor = std::min(raise_to(edge), roof(s));
  if (floor - floor_[s] > slack(s)) return Found::kNo;
  const Mark before = mark();
  set_floor(s, floor, base_[s]);
  Found found = Found::kNo;
  if (!hole_fits_unplaced(s)) {
    take_obstacles(s);
    found = solve_component(lo, hi);
  }
  if (found != Found::kYes) undo(before);
  return found;
}

// The edge with the fewest options by its weight; one without any fails the component.
Search::Edge Search::choose(int lo, int hi, bool& fails) {
  Edge best;
  double best_score = 0;
  for (int begin = lo; begin < hi;) {
    const int64_t floor = floor_[begin];
    int end = begin + 1;
    while (end < hi && floor_[end] == floor) end++;
    const bool is_valley = floor < kNever && (begin == lo || floor_[begin - 1] > floor) &&
                           (end == hi || floor_[end] > floor);
    for (int side = 0; is_valley && side < 2; side++) {
      const Edge edge{side == 0 ? begin : end - 1, begin, end, side == 0};
      const Options found = options(edge, lo, hi);
      if (found.fails) {
        weight_[edge.section] += 1;
        fails = true;
        return edge;
      }
      if (!found.usable) continue;
      const int options = found.placements + (found.may_raise ? 1 : 0);
      const double weight = weight_[edge.section] * full_[edge.section];
      const double score = options <= 1 ? 0 : options / weight;
      if (best.section < 0 || score < best_score ||
          (score == best_score && weight_[edge.section] > weight_[best.section])) {
        best = edge;
        best_score = score;
      }
    }
    begin = end;
  }
  return best;
}

Search::Options Search::options(const Edge& edge, int lo, int hi) const {
  const int s = edge.section;
  const int64_t floor = floor_[s];
  Options found;
  int64_t nbytes = 0;
  int64_t wall = kNever;  // what is not placed at the floor does not begin below
  if (edge.left && s > lo && crossing_[s]) wall = floor_[s - 1];
  if (!edge.left && s + 1 < hi && crossing_[s + 1]) wall = floor_[s + 1];
  for (const Cover& cover : covers(edge)) {
    if (is_placed_[cover.item]) continue;
    const Item& item = problem_.items[cover.item];
    if (!in_valley(cover, edge)) {
      wall = std::min(wall, edge.left ? floor_[edge.hi] : floor_[edge.lo - 1]);
    } else if (const int64_t offset = is_plain_ ? floor : lowest(item); offset > floor) {
      wall = std::min(wall, offset);
    } else if (floor <= highest_[cover.item]) {
      found.placements++;
      nbytes += item.size;
      if (!is_plain_ && leaves_hole(item, floor)) found.usable = false;
    } else {
      found.fails = true;  // it can only go higher
    }
  }
  const int64_t spare = slack(s);
  found.may_raise = spare > 0;
  if (!has_obstacles_ && wall < kNever && floor + nbytes + spare < wall) found.fails = true;
  if (found.placements == 0 && !found.may_raise) found.fails = true;
  return found;
}

const std::vector<Search::Cover>& Search::covers(const Edge& edge) const {
  return edge.left ? starts_[edge.section] : ends_[edge.section + 1];
}

bool Search::in_valley(const Cover& cover, const Edge& edge) const {
  return cover.range.lo >= edge.lo && cover.range.hi <= edge.hi;
}

// Where an item would lie now.
int64_t Search::lowest(const Item& item) const {
  int64_t offset = 0;
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) offset = std::max(offset, floor_[s]);
  }
  offset = round_up(offset, item.alignment);
  for (bool moved = has_obstacles_; moved;) {
    moved = false;
    for (const Range& range : item.ranges) {
      for (int s = range.lo; s < range.hi; s++) {
        const auto& all = problem_.obstacles[s];
        for (size_t at = obstacle_[s]; at < all.size(); at++) {
          if (offset + item.size <= all[at].begin) break;
          if (offset >= all[at].end) continue;
          offset = round_up(all[at].end, item.alignment);
          moved = true;
        }
      }
    }
  }
  return offset;
}

bool Search::leaves_hole(const Item& item, int64_t offset) const {
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) {
      if (floor_[s] < offset) return true;
    }
  }
  return false;
}

// The lowest offset of anything that covers an edge once nothing does at its floor.
int64_t Search::raise_to(const Edge& edge) const {
  int64_t best = lowest_of_crossing(edge);
  for (const Cover& cover : covers(edge)) {
    if (is_placed_[cover.item]) continue;
    const Item& item = problem_.items[cover.item];
    int64_t offset = lowest(item);
    if (offset == floor_[edge.section]) offset = lowest_on_top(edge, item);
    best = std::min(best, offset);
  }
  return best;
}

// An item in the valley that does not lie on its floor lies on something which the edge does not
// see.
int64_t Search::lowest_on_top(const Edge& edge, const Item& item) const {
  const int64_t floor = floor_[edge.section];
  int64_t best = kNever;
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) {
      if (obstacle_[s] < static_cast<int>(problem_.obstacles[s].size())) {
        best = std::min(best, problem_.obstacles[s][obstacle_[s]].end);
      }
    }
  }
  if (item.ranges.size() > 1) {
    for (size_t i = 0; i < problem_.items.size(); i++) {
      if (!is_placed_[i]) best = std::min(best, floor + problem_.items[i].size);
    }
    return best;
  }
  const Range& range = item.ranges.front();
  for (int t = range.lo; t < range.hi; t++) {
    const auto& others = edge.left ? starts_[t] : ends_[t + 1];
    if (t == edge.section) continue;
    for (const Cover& other : others) {
      if (!is_placed_[other.item]) {
        best = std::min(best, floor + problem_.items[other.item].size);
      }
    }
  }
  return best;
}

int64_t Search::lowest_of_crossing(const Edge& edge) const {
  const int s = edge.section;
  const int step = edge.left ? -1 : 1;
  const int beyond = edge.left ? s : s + 1;  // the first moment that such items cross
  if (crossing_[beyond] == 0) return kNever;
  const int64_t wall = floor_[s + step];
  int64_t best = kNever;
  for (int t = beyond; crossing_[t] != 0 && best > wall; t += step) {
    for (const Cover& cover : edge.left ? starts_[t - 1] : ends_[t + 1]) {
      const bool covers_edge = edge.left ? cover.range.hi > s : cover.range.lo <= s;
      if (is_placed_[cover.item] || !covers_edge) continue;
      if (is_above(problem_.items[cover.item], best)) continue;
      best = std::min(best, lowest(problem_.items[cover.item]));
    }
  }
  return best;
}

// Whether floors keep an item at an offset or above; says so as soon as one does.
bool Search::is_above(const Item& item, int64_t offset) const {
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) {
      if (floor_[s] >= offset) return true;
    }
  }
  return false;
}

// Whether an unplaced item fits between what is placed and the raised floors around a section.
bool Search::hole_fits_unplaced(int section) const {
  int lo = section;
  while (lo > 0 && count_[lo - 1] && floor_[lo - 1] > base_[lo - 1]) lo--;
  int hi = section + 1;
  while (hi < problem_.sections && count_[hi] && floor_[hi] > base_[hi]) hi++;
  for (int t = lo; t <= section; t++) {
    for (const Cover& cover : starts_[t]) {
      const Item& item = problem_.items[cover.item];
      if (is_placed_[cover.item] || cover.range.hi <= section || cover.range.hi > hi) continue;
      int64_t base = 0;
      int64_t top = kNever;
      for (const Range& range : item.ranges) {
        for (int s = range.lo; s < range.hi; s++) {
          base = std::max(base, base_[s]);
          top = std::min(top, floor_[s]);
        }
      }
      if (round_up(base, item.alignment) + item.size <= top) return true;
    }
  }
  return false;
}

void Search::place(int i, int64_t offset) {
  const Item& item = problem_.items[i];
  is_placed_[i] = 1;
  offset_[i] = offset;
  placed_order_.push_back(i);
  const int64_t top = offset + item.size;
  for (int t = item.ranges.front().lo + 1; t < item.ranges.back().hi; t++) spanning_[t]--;
  for (const Range& range : item.ranges) {
    for (int s = range.lo; s < range.hi; s++) {
      left_[s] -= item.size;
      count_[s]--;
      crossing_[s] -= s > range.lo;
      // A section that is done is no valley, and its height says nothing.
      set_floor(s, count_[s] ? top : kNever, count_[s] ? top : kNever);
      if (count_[s]) take_obstacles(s);
    }
    rehash(range.lo);
  }
}

void Search::set_floor(int s, int64_t floor, int64_t base) {
  changes_.push_back({s, obstacle_[s], floor_[s], base_[s]});
  floor_[s] = floor;
  base_[s] = base;
  rehash(s);
}

// A floor that reaches an obstacle goes on above it.
void Search::take_obstacles(int s) {
  const auto& all = problem_.obstacles[s];
  while (obstacle_[s] < static_cast<int>(all.size()) && all[obstacle_[s]].begin == floor_[s]) {
    const Obstacle& each = all[obstacle_[s]];
    set_floor(s, each.end, each.end);
    if (each.begin < capacity_) left_[s] -= std::min(each.end, capacity_) - each.begin;
    obstacle_[s]++;
  }
}

void Search::undo(const Mark& mark) {
  while (changes_.size() > mark.changes) {
    const Change& change = changes_.back();
    const int s = change.section;
    for (; obstacle_[s] > change.obstacle; obstacle_[s]--) {
      const Obstacle& each = problem_.obstacles[s][obstacle_[s] - 1];
      if (each.begin < capacity_) left_[s] += std::min(each.end, capacity_) - each.begin;
    }
    floor_[s] = change.floor;
    base_[s] = change.base;
    rehash(s);
    changes_.pop_back();
  }
  while (placed_order_.size() > mark.placed) {
    const int i = placed_order_.back();
    const Item& item = problem_.items[i];
    placed_order_.pop_back();
    is_placed_[i] = 0;
    for (int t = item.ranges.front().lo + 1; t < item.ranges.back().hi; t++) spanning_[t]++;
    for (const Range& range : item.ranges) {
      for (int s = range.lo; s < range.hi; s++) {
        left_[s] += item.size;
        count_[s]++;
        crossing_[s] += s > range.lo;
      }
      rehash(range.lo);
    }
  }
}

int64_t Search::roof(int s) const {
  const auto& all = problem_.obstacles[s];
  return obstacle_[s] < static_cast<int>(all.size()) ? all[obstacle_[s]].begin : kNever;
}

// Skylines of different capacities fail for themselves.
uint64_t Search::hash(int lo, int hi) const {
  uint64_t sum = mix(static_cast<uint64_t>(capacity_nbytes_)) ^
                 mix((static_cast<uint64_t>(lo) << 32) + static_cast<uint64_t>(hi));
  for (int s = lo; s < hi; s++) sum += hash_[s];
  return mix(sum) | 1;
}

void Search::rehash(int s) {
  uint64_t state = mix(static_cast<uint64_t>(floor_[s]) * 0x9e3779b97f4a7c15ULL + s);
  state = mix(state + static_cast<uint64_t>(floor_[s] - base_[s]));
  for (const Cover& cover : starts_[s]) {
    if (!is_placed_[cover.item]) state += name_[cover.item];
  }
  hash_[s] = state;
}

void Search::remember(uint64_t hash) { failed_[hash & (failed_.size() - 1)] = hash; }

// The table grows with what may have to be remembered, between tries.
void Search::make_room() {
  size_t size = failed_.size();
  while (size < kLargestTable && size < nodes_) size *= 2;
  if (size == failed_.size()) return;
  std::vector<uint64_t> old(size, 0);
  old.swap(failed_);
  for (const uint64_t hash : old) {
    if (hash != 0) remember(hash);
  }
}

}  // namespace tilefarm::memory
