// Wall times on a host whose clock, disturbances and cores a test scripts.

#include "wall_time.h"

#include <cmath>
#include <functional>
#include <string>

#include "check.h"
#include "failure.h"

namespace {

using namespace tilefarm::runner;

bool near(double a, double b) { return std::fabs(a - b) < 1e-9 * (std::fabs(b) + 1); }

// Every call takes `pace(call)` seconds; in regions that `disturb` names something else runs.
struct Script final : Host, Timed {
  std::function<double(int)> pace = [](int) { return 1e-5; };
  std::function<bool(int)> disturb = [](int) { return false; };
  double lost = 0.5e-3;      // in a disturbed region
  double asleep_share = 0;   // of a call, spent waiting for the accelerator
  double now = 100, processor = 7;
  long preemptions = 3;
  int calls = 0, regions = 0, prepared = 0, checked = 0;

  double seconds() override { return now; }
  Usage usage() override { return {processor, preemptions, 0, 0}; }
  void prepare() override { ++prepared; }
  void check() override {
    ++checked;
    ++regions;
  }
  void call() override {
    const double seconds = pace(calls++);
    now += seconds;
    processor += seconds * (1 - asleep_share);
    if (disturb(regions) && checked + 1 == prepared && last_disturbed_ != regions) {
      last_disturbed_ = regions;
      now += lost;
      ++preemptions;
    }
  }

 private:
  int last_disturbed_ = -1;
};

const Region kShort{1e-5, false};

std::string untimed(Script& script, const Precision& precision) {
  try {
    wall_time(script, kShort, precision, script);
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::kUntimed);
    return failure.why;
  }
  return "";
}

void a_steady_call_is_told_after_few_regions_of_a_millisecond() {
  Script script;
  const WallTime t = wall_time(script, kShort, {0.01, 1}, script);
  CHECK(near(t.minimum, 1e-5) && near(t.p10, 1e-5) && near(t.median, 1e-5) && near(t.p90, 1e-5));
  CHECK(t.calls * 1e-5 >= 1e-3 && t.calls * 1e-5 < 2e-3);
  CHECK(t.regions == 5 && t.rejected == 0);
  CHECK(script.prepared == script.checked && script.prepared == script.regions);
}

void a_long_call_is_a_region() {
  Script script;
  script.pace = [](int) { return 0.02; };
  const WallTime t = wall_time(script, {0.02, false}, {0.01, 1}, script);
  CHECK(t.calls == 1 && t.regions == 5 && near(t.median, 0.02));
}

void what_takes_longer_than_it_may_is_not_repeated() {
  Script script;
  const WallTime t = wall_time(script, {3.0, false}, {0.01, 1}, script);
  CHECK(script.calls == 0 && t.regions == 1 && near(t.median, 3.0));
  script.pace = [](int) { return 3.0; };
  CHECK(wall_time(script, {3.0, true}, {0.01, 1}, script).regions == 1);
  CHECK(script.calls == 1);
}

// Every other region is slower: more of them until the median is sure, or the seconds are gone.
void noise_takes_more_regions() {
  Script script;
  script.pace = [&](int) {
    return script.regions % 3 == 0 ? 1.3e-5 : 1e-5 + 1e-7 * (script.regions % 5);
  };
  const WallTime rough = wall_time(script, kShort, {0.05, 10}, script);
  const WallTime fine = wall_time(script, kShort, {0.01, 10}, script);
  CHECK(rough.regions >= 5 && fine.regions > 4 * rough.regions);
  CHECK(fine.median < 1.1e-5 && fine.minimum <= fine.p10 && fine.p10 < fine.p90);
  const double before = script.now;
  const WallTime cut = wall_time(script, kShort, {1e-6, 0.05}, script);
  CHECK(script.now - before >= 0.05 && script.now - before < 0.06);
  CHECK(cut.regions > 20);
}

void disturbed_regions_are_thrown_away_and_counted() {
  Script script;
  script.disturb = [](int region) { return region % 2 == 1; };
  const WallTime t = wall_time(script, kShort, {0.01, 1}, script);
  CHECK(near(t.p90, 1e-5));
  CHECK(t.regions == 5 && t.rejected >= 4);
}

void an_interrupt_is_no_disturbance() {
  Script script;
  script.lost = 5e-6;
  script.disturb = [](int) { return true; };
  CHECK(wall_time(script, kShort, {0.01, 1}, script).rejected == 0);
}

void to_sleep_until_the_accelerator_is_done_is_no_disturbance() {
  Script script;
  script.asleep_share = 0.9;
  CHECK(wall_time(script, kShort, {0.01, 1}, script).rejected == 0);
}

void a_host_that_is_never_quiet_gives_no_time() {
  Script script;
  script.disturb = [](int) { return true; };
  CHECK(untimed(script, {0.01, 0.1}).find("too busy to time a kernel") != std::string::npos);
}

void a_host_that_is_busy_at_first_is_given_time() {
  Script script;
  script.disturb = [](int region) { return region < 30; };
  const WallTime t = wall_time(script, kShort, {0.01, 0.01}, script);
  CHECK(t.rejected > 10 && near(t.median, 1e-5));
}

void a_clock_that_stands_still_or_goes_back_gives_no_time() {
  Script still;
  still.pace = [](int) { return 0.0; };
  CHECK(untimed(still, {0.01, 1}) == "the host's clock stands still");
  CHECK(still.calls < 100 * 10000);
  Script slow;
  slow.pace = [](int) { return 1e-12; };
  CHECK(untimed(slow, {0.01, 1}) == "the host's clock stands still");
  Script back;
  back.pace = [](int call) { return call == 0 ? -1e-3 : 1e-5; };
  CHECK(untimed(back, {0.01, 1}) == "the host's clock goes back");
}

void a_time_is_told_however_short_the_limit() {
  Script script;
  const WallTime t = wall_time(script, kShort, {0.01, 5e-5}, script);
  CHECK(t.regions == 1 && t.calls * 1e-5 >= 1e-3);
}

void a_summary_is_of_values_that_there_were() {
  const WallTime t = summary({5, 1, 3, 2, 4, 6, 9, 8, 7, 10, 11}, 4, 2);
  CHECK(t.minimum == 1 && t.p10 == 2 && t.median == 6 && t.p90 == 10);
  CHECK(t.calls == 4 && t.regions == 11 && t.rejected == 2);
  const WallTime one = summary({5}, 1, 0);
  CHECK(one.minimum == 5 && one.p10 == 5 && one.median == 5 && one.p90 == 5);
}

void what_the_clock_does_not_see_has_no_time() {
  try {
    summary({2e-6, 0, 1e-6}, 1, 0);
    CHECK(false);
  } catch (const Failure& failure) {
    CHECK(failure.kind == FailureKind::kUntimed);
    CHECK(failure.why == "a call is shorter than the clock's step");
  }
}

}  // namespace

int main() {
  a_steady_call_is_told_after_few_regions_of_a_millisecond();
  a_long_call_is_a_region();
  what_takes_longer_than_it_may_is_not_repeated();
  noise_takes_more_regions();
  disturbed_regions_are_thrown_away_and_counted();
  an_interrupt_is_no_disturbance();
  to_sleep_until_the_accelerator_is_done_is_no_disturbance();
  a_host_that_is_never_quiet_gives_no_time();
  a_clock_that_stands_still_or_goes_back_gives_no_time();
  a_time_is_told_however_short_the_limit();
  a_summary_is_of_values_that_there_were();
  a_host_that_is_busy_at_first_is_given_time();
  what_the_clock_does_not_see_has_no_time();
}
