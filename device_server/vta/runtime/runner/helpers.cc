#include "helpers.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "crash.h"

namespace tilefarm::runner {
namespace {

// A helper looks this often for work, or for the end of it, before it sleeps: kernels come in rows,
// with small ones between that are not shared. A quarter of a millisecond, where PAUSE takes 40
// cycles.
constexpr int kLooks = 20000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

// For each thread: one that is kept from its core leaves the rest of its share to the others.
constexpr uint64_t kParts = 4;
constexpr uint64_t kNumber = 0xffffffff;

// Parts are taken, not dealt out, as programs' own pools do (compile_worker/codegen/pool.py): who
// comes late is not waited for unless it has begun a part. `word_` is the round << 32 | the next
// part; who takes a part by changing it has read the round's function and state.
class Helpers {
 public:
  // Returns when every helper is past what a new thread asks of the system.
  explicit Helpers(unsigned count) : parts_((count + 1) * kParts), left_(count) {
    for (unsigned h = 0; h < count; ++h) std::thread([this] { serve(); }).detach();
    wait(ended_, [this] { return left_.load(std::memory_order_acquire) == 0; });
  }

  // One call at a time: there is one thread that calls kernels.
  void share(Part part, void* state) {
    part_.store(part, std::memory_order_relaxed);
    state_.store(state, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      word_.store(((word_.load(std::memory_order_relaxed) >> 32) + 1) << 32);
    }
    begun_.notify_all();
    while (take_part()) {
    }
    wait(ended_, [this] { return done_.load(std::memory_order_acquire) == parts_; });
  }

 private:
  [[noreturn]] void serve() {
    have_crash_stack();
    left_.fetch_sub(1, std::memory_order_acq_rel);
    notify_end();
    for (;;) {
      if (!take_part()) wait(begun_, [this] { return is_part_left(); });
    }
  }

  // Whether there was one.
  bool take_part() {
    uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t number = word & kNumber;
      if (number >= parts_) return false;
      const Part part = part_.load(std::memory_order_relaxed);
      void* const state = state_.load(std::memory_order_relaxed);
      if (!word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) continue;
      part(state, static_cast<int64_t>(number), static_cast<int64_t>(parts_));
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts_) notify_end();
      return true;
    }
  }

  bool is_part_left() const { return (word_.load(std::memory_order_acquire) & kNumber) < parts_; }

  void notify_end() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
    }
    ended_.notify_one();
  }

  template <typename Done>
  void wait(std::condition_variable& changed, const Done& done) {
    for (int look = 0; look < kLooks; ++look) {
      if (done()) return;
      pause();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    changed.wait(lock, done);
  }

  const uint64_t parts_;
  std::atomic<Part> part_{nullptr};
  std::atomic<void*> state_{nullptr};
  std::atomic<uint64_t> word_{kNumber}, done_{0};
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
