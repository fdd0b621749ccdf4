#include "host.h"

#include <sched.h>
#include <sys/resource.h>

#include <ctime>

namespace tilefarm::runner {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

// Raw: not slewed by who sets the time.
double Machine::seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Usage Machine::usage() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return {seconds_of(used.ru_utime) + seconds_of(used.ru_stime), used.ru_nivcsw, used.ru_majflt,
          sched_getcpu()};
}

}  // namespace tilefarm::runner
