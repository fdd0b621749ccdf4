// Random numbers that are the same on every machine.

#ifndef TILEFARM_MEMORY_SCHEDULE_RANDOM_H_
#define TILEFARM_MEMORY_SCHEDULE_RANDOM_H_

#include <cstdint>

namespace tilefarm::memory {

// splitmix64: Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // 0 to 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  int64_t below(int64_t end) { return static_cast<int64_t>(next() % static_cast<uint64_t>(end)); }

 private:
  uint64_t state_;
};

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_RANDOM_H_
