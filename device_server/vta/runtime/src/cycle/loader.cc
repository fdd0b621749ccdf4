#include "loader.h"

#include <algorithm>

namespace tilefarm {

void Loader::start(const Instruction& f, uint32_t element_nbytes) {
  busy_ = fresh_ = true;
  wide_ = element_nbytes <= config_.bus_nbytes;
  y_skip_ = f.y_pad_0;
  commands_done_ = false;
  row_begin_ = uint64_t{f.dram_base} * element_nbytes;
  pitch_nbytes_ = uint64_t{f.x_stride} * element_nbytes;
  row_nbytes_ = uint64_t{f.x_size} * element_nbytes;
  row_ = 0;
  rows_ = f.y_size;
  in_flight_ = 0;
  pipe_valid_ = false;
  pad_delay_ = wide_ ? 0 : 1;
  plan_padding(f);
  begin_row();
}

// Top rows, then the sides of every row, then bottom rows. Without sides, the rows themselves are
// passed over in one cycle each before the bottom can be padded.
void Loader::plan_padding(const Instruction& f) {
  const uint64_t width = uint64_t{f.x_pad_0} + f.x_size + f.x_pad_1;
  const uint64_t sides = uint64_t{f.y_size} * (f.x_pad_0 + f.x_pad_1);
  pads_before_ = f.y_pad_0 * width + sides;
  pads_after_ = f.y_pad_1 * width;
  skips_ = sides == 0 && f.y_pad_1 != 0 ? f.y_size : 0;
}

void Loader::begin_row() {
  const uint64_t bus = config_.bus_nbytes;
  address_ = row_begin_ / bus * bus;
  row_beats_left_ = (row_begin_ + row_nbytes_ + bus - 1) / bus - row_begin_ / bus;
}

void Loader::step(MemoryPort& port) {
  if (!busy_) return;
  if (fresh_) {
    fresh_ = false;
    return;
  }
  const bool arrives = port.arrives(client_);
  const bool fires = wide_ ? arrives : pipe_valid_;
  pipe_valid_ = arrives;
  if (y_skip_ > 0) {
    --y_skip_;
  } else if (!commands_done_ && port.slot_empty(client_)) {
    issue(port);
  }
  if (fires) --in_flight_;
  pad(fires);
}

bool Loader::waits(const MemoryPort& port) const {
  const bool fires = wide_ ? port.arrives(client_) : pipe_valid_;
  return !fires && (fresh_ || pad_delay_ > 0 || padding() == 0);
}

void Loader::issue(MemoryPort& port) {
  const uint64_t page = config_.burst_nbytes();
  const uint64_t to_boundary = (page - address_ % page) / config_.bus_nbytes;
  const uint64_t beats = std::min(row_beats_left_, to_boundary);
  port.request(client_, static_cast<uint32_t>(beats));
  in_flight_ += beats;
  address_ += beats * config_.bus_nbytes;
  row_beats_left_ -= beats;
  if (row_beats_left_ > 0) return;
  if (++row_ == rows_) {
    commands_done_ = true;
    return;
  }
  row_begin_ += pitch_nbytes_;
  begin_row();
}

void Loader::pad(bool data_fires) {
  if (pad_delay_ > 0) {
    --pad_delay_;
  } else if (pads_before_ > 0) {
    if (!data_fires) --pads_before_;
  } else if (skips_ > 0) {
    --skips_;
  } else if (pads_after_ > 0) {
    if (!data_fires) --pads_after_;
  }
}

// Steady while nothing happens but beats that arrive every cycle or not at all, and plain padding.
uint64_t Loader::steady_cycles(const MemoryPort& port, uint64_t limit) const {
  if (!busy_) return limit;
  const bool arrives = port.arrives(client_);
  const bool may_issue = !commands_done_ && port.slot_empty(client_);
  if (fresh_ || y_skip_ > 0 || may_issue || done()) return 0;
  if (!wide_ && pipe_valid_ != arrives) return 0;
  if (padding() == 0) return limit;
  if (pad_delay_ > 0) return 0;
  if (pads_before_ > 0) return arrives ? limit : std::min(limit, pads_before_);
  if (skips_ > 0) return std::min(limit, skips_);
  return arrives ? limit : std::min(limit, pads_after_);
}

void Loader::jump(uint64_t cycles, const MemoryPort& port) {
  if (!busy_) return;
  const bool arrives = port.arrives(client_);
  if (arrives) in_flight_ -= cycles;
  if (padding() == 0) return;
  if (pads_before_ > 0) {
    if (!arrives) pads_before_ -= cycles;
  } else if (skips_ > 0) {
    skips_ -= cycles;
  } else if (!arrives) {
    pads_after_ -= cycles;
  }
}

}  // namespace tilefarm
