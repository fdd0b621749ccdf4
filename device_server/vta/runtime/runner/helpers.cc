#include "helpers.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "crash.h"

namespace tilefarm::runner {
namespace {

// A helper looks this often for work, or for the end of it, before it sleeps: kernels come in rows.
constexpr int kLooks = 4000;

class Helpers {
 public:
  // Returns when every helper is past what a new thread asks of the system.
  explicit Helpers(unsigned count) : count_(count), left_(count) {
    for (unsigned h = 0; h < count; ++h) std::thread([this, h] { serve(h + 1); }).detach();
    wait_for_the_end();
  }

  // One call at a time: there is one thread that calls kernels.
  void share(Part part, void* state) {
    part_ = part;
    state_ = state;
    left_.store(count_, std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    begun_.notify_all();
    part(state, 0, count_ + 1);
    wait_for_the_end();
  }

 private:
  [[noreturn]] void serve(unsigned number) {
    have_crash_stack();
    for (uint64_t seen = 0;;) {
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        {
          const std::lock_guard<std::mutex> lock(mutex_);
        }
        ended_.notify_one();
      }
      wait(begun_, [&] { return round_.load(std::memory_order_acquire) != seen; });
      ++seen;
      part_(state_, number, count_ + 1);
    }
  }

  void wait_for_the_end() {
    wait(ended_, [this] { return left_.load(std::memory_order_acquire) == 0; });
  }

  template <typename Done>
  void wait(std::condition_variable& changed, const Done& done) {
    for (int look = 0; look < kLooks; ++look) {
      if (done()) return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    changed.wait(lock, done);
  }

  const unsigned count_;
  Part part_ = nullptr;
  void* state_ = nullptr;
  std::atomic<uint64_t> round_{0};
  std::atomic<unsigned> left_;
  std::mutex mutex_;
  std::condition_variable begun_, ended_;
};

Helpers* helpers = nullptr;  // never destroyed: its threads end with the process

}  // namespace

void start_helpers(unsigned count) {
  if (count > 0) helpers = new Helpers(count);
}

Share share_work() {
  if (helpers == nullptr) return nullptr;
  return [](Part part, void* state) { helpers->share(part, state); };
}

}  // namespace tilefarm::runner
