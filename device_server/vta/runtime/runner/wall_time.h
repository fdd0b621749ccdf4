// How long one call takes by the host's clock: regions of many calls, of which only those count in
// which the thread ran undisturbed.
#ifndef TILEFARM_RUNNER_WALL_TIME_H_
#define TILEFARM_RUNNER_WALL_TIME_H_

#include <cstdint>
#include <string>
#include <vector>

#include "host.h"

namespace tilefarm::runner {

// Beyond a precision's seconds, where nothing undisturbed was seen in them: a thread has its turn on
// a core that a dozen others want, more than once.
constexpr double kPatienceSeconds = 0.5;

// What is told of a single call that ends before the clock moves: host work of almost nothing.
constexpr double kLeastSeconds = 1e-9;

// When to stop: the median's relative standard error is small enough, or so many seconds are gone.
struct Precision {
  double error = 0, seconds = 0;
};

// Of one call; over `regions` of `calls` each. `rejected` regions were disturbed.
struct WallTime {
  double minimum = 0, p10 = 0, median = 0, p90 = 0;
  uint32_t calls = 0, regions = 0, rejected = 0;
};

// What is timed. `call` is repeated; the others come before and after a region and are not timed.
class Timed {
 public:
  virtual ~Timed() = default;
  virtual void prepare() = 0;
  virtual void call() = 0;
  virtual void check() = 0;
};

// One stretch of time, and whether something else ran in it.
struct Region {
  double seconds = 0;
  bool disturbed = false;
};

// Calls so often, one after the other. kUntimed when the clock goes back.
Region measure(Timed& timed, uint32_t calls, Host& host);

// The distribution of seconds per call; in any order, at least one. kUntimed when the clock did not
// see one of them.
WallTime summary(std::vector<double> seconds, uint32_t calls, uint32_t rejected);

// Why there is no time, where all regions were disturbed.
std::string disturbed_words(uint32_t rejected);

// `first` is a call that was made already, which has warmed what there is to be warmed; where it
// lasted as long as all of this may, it counts and nothing is repeated. kUntimed when the clock
// stands still, or when no region was undisturbed.
WallTime wall_time(Timed& timed, const Region& first, const Precision& precision, Host& host);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_WALL_TIME_H_
