#include "fetch.h"

#include <algorithm>

namespace tilefarm {

Fetch::Fetch(const Config& config, size_t count)
    : left_(count),
      batch_limit_(std::max<uint64_t>(1, config.burst_nbytes() / kInstructionNbytes)),
      bus_nbytes_(config.bus_nbytes) {}

void Fetch::begin_batch() {
  batch_ = std::min<uint64_t>(left_, batch_limit_);
  batch_beats_ = (batch_ * kInstructionNbytes + bus_nbytes_ - 1) / bus_nbytes_;
  beats_ = drained_ = 0;
  state_ = left_ == 0 ? State::kIdle : State::kCommand;
}

bool Fetch::step(MemoryPort& port, bool queue_has_room) {
  switch (state_) {
    case State::kIdle:
      if (left_ > 0) begin_batch();
      return false;
    case State::kCommand:
      if (port.slot_empty(kFetchClient)) {
        port.request(kFetchClient, static_cast<uint32_t>(batch_beats_));
        state_ = State::kData;
      }
      return false;
    case State::kData:
      if (port.arrives(kFetchClient) && ++beats_ == batch_beats_) state_ = State::kDrain;
      return false;
    case State::kDrain: break;
  }
  if (drained_ < batch_) {
    if (!queue_has_room) return false;
    ++drained_;
    ++position_;
    return true;
  }
  left_ -= batch_;
  begin_batch();
  return false;
}

uint64_t Fetch::steady_cycles(const MemoryPort& port, uint64_t limit, bool queue_has_room) const {
  switch (state_) {
    case State::kIdle: return left_ == 0 ? limit : 0;
    case State::kCommand: return 0;
    case State::kData:
      return port.arrives(kFetchClient) ? std::min(limit, batch_beats_ - beats_ - 1) : limit;
    case State::kDrain: return drained_ < batch_ && !queue_has_room ? limit : 0;
  }
  return 0;
}

void Fetch::jump(uint64_t cycles, const MemoryPort& port) {
  if (state_ == State::kData && port.arrives(kFetchClient)) beats_ += cycles;
}

}  // namespace tilefarm
