#include "wall_time.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "failure.h"

namespace tilefarm::runner {
namespace {

// So long a region lasts at least: a clock's steps, and reading it, are a ten-thousandth of that.
constexpr double kRegionSeconds = 1e-3;
// What is aimed at, so that few regions turn out too short.
constexpr double kAimSeconds = 1.25 * kRegionSeconds;
// Fewer say nothing about their spread.
constexpr size_t kLeastRegions = 5;
// A clock that has not moved after so many calls never will.
constexpr uint32_t kMostUntimedCalls = 10000;
// A nanosecond each is a hundredth of a second: nor does one that says less than a millisecond.
constexpr uint32_t kMostCalls = 10000000;
constexpr double kMostGrowth = 100;
// A region may lose so much of its time to others: an interrupt here and there.
constexpr double kMostLost = 0.01;
// Standard error of the median of n normal values in units of (p90 - p10) / sqrt(n).
constexpr double kMedianError = 1.2533 / 2.5631;

double error_of(const WallTime& t) {
  return kMedianError * (t.p90 - t.p10) / t.median / std::sqrt(static_cast<double>(t.regions));
}

uint32_t more_calls(uint32_t calls, double seconds) {
  const double growth = seconds > 0 ? kAimSeconds / seconds : kMostGrowth;
  return calls + std::max(1U, static_cast<uint32_t>(calls * (std::min(growth, kMostGrowth) - 1)));
}

}  // namespace

std::string disturbed_words(uint32_t rejected) {
  return "the host is too busy to time a kernel: other work ran in all " +
         std::to_string(rejected) + " timed regions";
}

// Who waits for the accelerator asleep is off the processor by its own will; only where the system
// took it away is the rest of the time somebody else's.
Region measure(Timed& timed, uint32_t calls, Host& host) {
  timed.prepare();
  const Usage before = host.usage();
  const double begin = host.seconds();
  for (uint32_t k = 0; k < calls; ++k) timed.call();
  const double seconds = host.seconds() - begin;
  const Usage after = host.usage();
  timed.check();
  if (seconds < 0) fail(FailureKind::kUntimed, "the host's clock goes back");
  const bool interrupted = after.preemptions != before.preemptions ||
                           after.major_faults != before.major_faults || after.core != before.core;
  const double lost = seconds - (after.processor_seconds - before.processor_seconds);
  return {seconds, interrupted && lost > kMostLost * seconds};
}

WallTime summary(std::vector<double> seconds, uint32_t calls, uint32_t rejected) {
  std::sort(seconds.begin(), seconds.end());
  if (seconds.front() <= 0) fail(FailureKind::kUntimed, "a call is shorter than the clock's step");
  const auto at = [&](double share) {
    const auto last = static_cast<double>(seconds.size() - 1);
    return seconds[static_cast<size_t>(std::lround(share * last))];
  };
  return {at(0), at(0.1), at(0.5), at(0.9), calls, static_cast<uint32_t>(seconds.size()), rejected};
}

WallTime wall_time(Timed& timed, const Region& first, const Precision& precision, Host& host) {
  if (first.seconds >= precision.seconds && !first.disturbed) {
    return summary({first.seconds}, 1, 0);
  }
  const double deadline = host.seconds() + precision.seconds;
  std::vector<double> kept;
  uint32_t calls = 1, rejected = 0;
  size_t look = kLeastRegions;  // Looking sorts, so it is done after ever more regions.
  do {
    const Region region = measure(timed, calls, host);
    if (region.seconds < kRegionSeconds) {
      if (calls >= (region.seconds > 0 ? kMostCalls : kMostUntimedCalls)) {
        fail(FailureKind::kUntimed, "the host's clock stands still");
      }
      calls = more_calls(calls, region.seconds);
      kept.clear();
    } else if (region.disturbed) {
      ++rejected;
    } else {
      kept.push_back(region.seconds / calls);
      if (kept.size() < look) continue;
      look += look / 4;
      const WallTime found = summary(kept, calls, rejected);
      if (error_of(found) <= precision.error) return found;
    }
  } while (host.seconds() < deadline ||
           (kept.empty() && (rejected == 0 || host.seconds() < deadline + kPatienceSeconds)));
  if (kept.empty()) fail(FailureKind::kUntimed, disturbed_words(rejected));
  return summary(kept, calls, rejected);
}

}  // namespace tilefarm::runner
