// The exact search: is there a placement within a capacity?
//
// Depth first over skylines. In every section of time the floor is the first address above what was
// placed. A valley is a run of sections with one floor between higher ones; what covers its edge at
// its floor lies in the valley as a whole, which leaves few buffers. A node takes an edge and tries
// each of them there, and then that nothing covers the edge, which raises its floor as far as the
// rest allows and wastes these bytes. Every placement whose buffers cannot be moved down is found
// so.
//
// What ends a branch: a section that must hold more bytes than are left; a hole that an unplaced
// buffer would fit into (one of the placements with the smallest sum of offsets is enough); a
// skyline that failed before (a table of hashes, kept over restarts). Where no unplaced buffer
// crosses a moment, both sides are searched apart. The edge is the one with the fewest options for
// how full its section is and how often it failed (weighted degree, Boussemart et al., ECAI 2004).
// Sections, canonical order, dominance and decomposition are MiniMalloc's ideas (Moffitt, ASPLOS
// 2023, vol. 4); skylines, valleys, the table and weights are not.

#ifndef TILEFARM_MEMORY_SEARCH_H_
#define TILEFARM_MEMORY_SEARCH_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "packing.h"
#include "problem.h"

namespace tilefarm::memory {

enum class Found { kNo, kYes, kUnknown };

// When to give up: too many nodes in all, too late, or told to stop.
class Limits {
 public:
  explicit Limits(const tilefarm_memory_limits& limits);
  bool reached(uint64_t nodes) const;
  // Looks at the clock too, so it costs more.
  bool over() const;

 private:
  uint64_t nodes_;
  std::chrono::steady_clock::time_point end_;
  const int32_t* stop_;
};

// The order in which buffers are tried at an edge.
struct Order {
  int by;        // size, width, or their product
  double noise;  // keys are multiplied by 1 - noise / 2 to 1 + noise / 2
  uint64_t seed;
};

class Search {
 public:
  Search(const Problem& problem, const Limits& limits);

  // Whether there is a placement within a capacity, or kUnknown after so many nodes of this try.
  Found find(int64_t capacity_nbytes, const Order& order, uint64_t nodes);

  const Offsets& offsets() const { return offset_; }  // after kYes
  uint64_t nodes() const { return nodes_; }

 private:
  struct Cover {  // an item in one of its ranges
    int item;
    Range range;
  };
  struct Edge {
    int section = -1;
    int lo = 0;  // its valley
    int hi = 0;
    bool left = true;
  };
  struct Options {
    int placements = 0;
    bool usable = true;  // nothing that fits leaves a hole elsewhere
    bool fails = false;
    bool may_raise = false;
  };
  struct Change {
    int section;
    int obstacle;
    int64_t floor;
    int64_t base;
  };
  struct Mark {
    size_t changes;
    size_t placed;
  };

  void begin(int64_t capacity_nbytes);
  void set_order(const Order& order);
  Found solve(int lo, int hi);
  Found solve_component(int lo, int hi);
  Found branch(const Edge& edge, int lo, int hi);
  Found raised(const Edge& edge, int lo, int hi);

  Edge choose(int lo, int hi, bool& fails);
  Options options(const Edge& edge, int lo, int hi) const;
  const std::vector<Cover>& covers(const Edge& edge) const;
  bool in_valley(const Cover& cover, const Edge& edge) const;
  int64_t lowest(const Item& item) const;
  bool is_above(const Item& item, int64_t offset) const;
  bool leaves_hole(const Item& item, int64_t offset) const;
  int64_t raise_to(const Edge& edge) const;
  int64_t lowest_on_top(const Edge& edge, const Item& item) const;
  int64_t lowest_of_crossing(const Edge& edge) const;
  bool hole_fits_unplaced(int section) const;

  int64_t slack(int s) const { return capacity_ - floor_[s] - left_[s]; }
  void place(int i, int64_t offset);
  void set_floor(int s, int64_t floor, int64_t base);
  void take_obstacles(int s);
  Mark mark() const { return {changes_.size(), placed_order_.size()}; }
  void undo(const Mark& mark);
  int64_t roof(int s) const;

  uint64_t hash(int lo, int hi) const;
  void rehash(int s);
  bool failed_before(uint64_t hash) const { return failed_[hash & (failed_.size() - 1)] == hash; }
  void remember(uint64_t hash);
  void make_room();

  const Problem& problem_;
  const Limits& limits_;
  int64_t capacity_nbytes_ = 0;
  int64_t capacity_ = 0;  // in units; with padding an upper bound of where sizes end
  bool has_obstacles_ = false;
  bool is_plain_ = true;  // no obstacle, alignment or second lifetime anywhere
  bool has_pads_ = false;

  std::vector<std::vector<Cover>> starts_;  // by the section that a range begins with
  std::vector<std::vector<Cover>> ends_;    // by the section after a range
  std::vector<int64_t> highest_;            // by item: its highest offset

  std::vector<int64_t> floor_;   // by section
  std::vector<int64_t> base_;    // the floor before it was raised
  std::vector<int64_t> left_;    // bytes still to place, obstacles above the floor included
  std::vector<int> count_;       // unplaced items
  std::vector<int> obstacle_;    // the first one above the floor
  std::vector<int> crossing_;    // by moment: unplaced items on both sides in one range
  std::vector<int> spanning_;    // and in any
  std::vector<uint64_t> hash_;   // by section, of floor, base and the items that begin
  std::vector<char> is_placed_;  // by item
  std::vector<uint64_t> name_;   // a random number
  Offsets offset_;
  std::vector<Change> changes_;
  std::vector<int> placed_order_;
  std::vector<int> candidates_;  // of all edges that are being tried, one after the other
  std::vector<Range> parts_;

  std::vector<double> key_;     // by item: larger ones are tried first
  std::vector<double> full_;    // by section: the share of its bytes that are wanted
  std::vector<double> weight_;  // by section: how often it failed, lately
  std::vector<uint64_t> failed_;
  uint64_t nodes_ = 0;
  uint64_t end_nodes_ = 0;
  int depth_ = 0;
};

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SEARCH_H_
