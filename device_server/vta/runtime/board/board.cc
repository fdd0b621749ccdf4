// A stand-in for a board: the original VTA runtime's functions and nothing else, so nothing counts
// cycles; what the accelerator would take passes as real time.
//
// The library beside this one computes and knows the cycles. VTASynchronize returns when that many
// have passed at the board's frequency, seen from its call, as a driver that asks a register does.
// It takes the original configuration's geometry. Variables of its environment, read once (see
// `tilefarm device --runtime-env`):
//
//   TILEFARM_BOARD_MHZ     the accelerator's clock; 100 unless it is said
//   TILEFARM_BOARD_JITTER  each run takes up to this share longer, at random; 0.02
//   TILEFARM_BOARD_SEED    of that; 1

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "tilefarm_vta.h"
#include "vta_runtime.h"

namespace {

constexpr const char* kSimulator = "libtilefarm_vta.so";
constexpr size_t kWhyNbytes = 1024;

// As the original does when something is wrong.
[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "stand-in board: %s\n", why);
  std::abort();
}

double setting(const char* name, double fallback, double least) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(value) || value < least) {
    die((std::string(name) + "=" + text + " is no number that it can be").c_str());
  }
  return value;
}

// Its symbols stay its own: whoever asks this library for a counter is told that there is none.
void* simulator() {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&die), &self) == 0) die("where does it lie?");
  const std::string path = self.dli_fname;
  const std::string beside = path.substr(0, path.rfind('/') + 1) + kSimulator;
  void* handle = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) die(dlerror());
  return handle;
}

template <typename Function>
Function* found(void* handle, const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function == nullptr) die(dlerror());
  return function;
}

class Board {
 public:
  Board()
      : handle_(simulator()),
        clear_counters_(found<void()>(handle_, "tilefarm_vta_clear_counters")),
        read_counters_(found<decltype(tilefarm_vta_read_counters)>(handle_,
                                                                   "tilefarm_vta_read_counters")),
        last_error_(found<decltype(tilefarm_vta_last_error)>(handle_, "tilefarm_vta_last_error")),
        synchronize_(found<decltype(::VTASynchronize)>(handle_, "VTASynchronize")),
        seconds_a_cycle_(1e-6 / setting("TILEFARM_BOARD_MHZ", 100, 1e-3)),
        jitter_(setting("TILEFARM_BOARD_JITTER", 0.02, 0)),
        random_(0x9e3779b97f4a7c15U * (1 + uint64_t(setting("TILEFARM_BOARD_SEED", 1, 0)))) {}

  template <typename Function>
  Function* function(const char* name) const {
    return found<Function>(handle_, name);
  }

  // A queue that was nearly full may have run before: those cycles are waited for here as well.
  void synchronize(void* command, uint32_t wait_cycles) {
    const double begin = now();
    synchronize_(command, wait_cycles);
    char why[kWhyNbytes];
    if (last_error_(why, sizeof why) != TILEFARM_VTA_OK) die(why);
    tilefarm_vta_counters counters;
    read_counters_(&counters);
    clear_counters_();
    const double cycles = static_cast<double>(counters.cycles);
    const double end = begin + cycles * seconds_a_cycle_ * (1 + jitter_ * share());
    while (now() < end) {
    }
  }

 private:
  static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  // xorshift64*: [0, 1).
  double share() {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return static_cast<double>((random_ * 0x2545f4914f6cdd1dU) >> 11) * 0x1p-53;
  }

  void* handle_;
  void (*clear_counters_)();
  decltype(&tilefarm_vta_read_counters) read_counters_;
  decltype(&tilefarm_vta_last_error) last_error_;
  decltype(&::VTASynchronize) synchronize_;
  double seconds_a_cycle_, jitter_;
  uint64_t random_;
};

Board board;  // made as the library is loaded: later nothing may be opened

}  // namespace

// The same function of the library beside this one.
#define FORWARD(result, name, parameters, names)                            \
  result name parameters {                                                  \
    static auto* const function = board.function<result parameters>(#name); \
    return function names;                                                  \
  }

VTA_HOSTS(FORWARD)
VTA_HANDLING(FORWARD)
VTA_QUEUING(FORWARD)
VTA_RARE(FORWARD)

void VTASynchronize(void* command, uint32_t wait_cycles) {
  board.synchronize(command, wait_cycles);
}
