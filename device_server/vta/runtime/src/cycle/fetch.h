// Instruction fetch, cycle by cycle: a batch is read in one burst, then handed out one a cycle.
//
// Model of core/FetchVME64.scala: reading and handing out do not overlap, and a full queue stops
// all.
#ifndef TILEFARM_CYCLE_FETCH_H_
#define TILEFARM_CYCLE_FETCH_H_

#include <cstddef>
#include <cstdint>

#include "memory_port.h"

namespace tilefarm {

class Fetch {
 public:
  Fetch(const Config& config, size_t count);

  // Returns whether the instruction `position()` is handed out in this cycle.
  bool step(MemoryPort& port, bool queue_has_room);
  size_t position() const { return position_; }
  bool draining() const { return state_ == State::kDrain && drained_ < batch_; }
  uint64_t steady_cycles(const MemoryPort& port, uint64_t limit, bool queue_has_room) const;
  void jump(uint64_t cycles, const MemoryPort& port);

 private:
  enum class State { kIdle, kCommand, kData, kDrain };
  void begin_batch();

  State state_ = State::kIdle;
  size_t left_, position_ = 0;
  uint64_t batch_limit_, bus_nbytes_;
  uint64_t batch_ = 0, batch_beats_ = 0, beats_ = 0, drained_ = 0;
};

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_FETCH_H_
