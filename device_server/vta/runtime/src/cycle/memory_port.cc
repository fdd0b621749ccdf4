#include "memory_port.h"

#include <algorithm>

namespace tilefarm {

void MemoryPort::step() {
  const bool last_beat = data_valid_ && remaining_ == 0;
  step_dram();
  step_arbiter(last_beat);
  for (int c = 0; c < kClients; ++c) {
    if (requested_[c] == 0) continue;
    slots_[c] = requested_[c];
    requested_[c] = 0;
  }
}

void MemoryPort::step_dram() {
  client_valid_ = data_valid_;
  client_ = data_client_;
  const bool waiting = !queue_.empty();
  if (busy_) {
    if (data_valid_ && remaining_ == 1) busy_ = false;
    if (data_valid_ && remaining_ != 0) --remaining_;
  } else if (waiting && waited_ == delay_) {
    const Burst burst = queue_.front();
    queue_.pop_front();
    remaining_ = burst.beats - 1;
    busy_ = remaining_ != 0;
    burst_left_ = burst.beats;
    burst_client_ = burst.client;
  }
  waited_ = waiting ? std::min(waited_ + 1, delay_) : 0;
  data_valid_ = burst_left_ > 0;
  data_client_ = burst_client_;
  if (burst_left_ > 0) --burst_left_;
}

// No command is issued in a cycle that carries a last beat; that beat frees an outstanding burst.
void MemoryPort::step_arbiter(bool last_beat) {
  if (last_beat) {
    ++free_;
    return;
  }
  if (free_ == 0) return;
  for (int c = 0; c < kClients; ++c) {
    if (slots_[c] == 0) continue;
    queue_.push_back({slots_[c], static_cast<Client>(c)});
    slots_[c] = 0;
    --free_;
    return;
  }
}

bool MemoryPort::any_slot() const {
  return std::any_of(slots_.begin(), slots_.end(), [](uint32_t beats) { return beats != 0; });
}

// In the middle of a burst whose beats fill both registers.
bool MemoryPort::streaming() const {
  return busy_ && data_valid_ && client_valid_ && data_client_ == client_ &&
         data_client_ == burst_client_ && burst_left_ > 1 && remaining_ > 2;
}

uint64_t MemoryPort::steady_cycles() const {
  if (free_ != 0 && any_slot()) return 0;
  if (streaming()) return std::min(burst_left_, remaining_ - 1);
  if (data_valid_ || client_valid_ || burst_left_ != 0 || busy_) return 0;
  if (queue_.empty()) return waited_ == 0 ? kForever : 0;
  return delay_ - waited_;
}

void MemoryPort::jump(uint64_t cycles) {
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(cycles, UINT32_MAX));
  if (!queue_.empty())
    waited_ = std::min(delay_, waited_ + std::min(count, delay_));
  else
    waited_ = 0;
  if (!busy_) return;
  burst_left_ -= count;
  remaining_ -= count;
}

}  // namespace tilefarm
