#include "host.h"

#include <sched.h>
#include <sys/resource.h>

#include <ctime>
#include <utility>

namespace tilefarm::runner {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

}  // namespace

struct Machine::Cores {
  cpu_set_t usable;
  int current;

  void stay() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(current, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
};

Machine::Machine() = default;

Machine::~Machine() {
  if (cores_) sched_setaffinity(0, sizeof cores_->usable, &cores_->usable);
}

void Machine::stay() {
  auto cores = std::make_unique<Cores>();
  cores->current = sched_getcpu();
  const bool known = cores->current >= 0 && cores->current < CPU_SETSIZE &&
                     sched_getaffinity(0, sizeof cores->usable, &cores->usable) == 0;
  if (!known) return;
  cores_ = std::move(cores);
  cores_->stay();
}

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

void Machine::move() {
  if (!cores_) return;
  do {
    cores_->current = (cores_->current + 1) % CPU_SETSIZE;
  } while (!CPU_ISSET(cores_->current, &cores_->usable));
  cores_->stay();
}

}  // namespace tilefarm::runner
