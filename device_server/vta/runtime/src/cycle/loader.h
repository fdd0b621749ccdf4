// One DMA loader (UOP, INP, WGT or ACC), cycle by cycle: commands per row, arriving beats, padding.
//
// Model of TensorLoadNarrowVME.scala and TensorLoadWideVME.scala of apache/tvm-vta. Loaders of
// elements that are no larger than the bus are "wide": they skip one pipeline stage.
#ifndef TILEFARM_CYCLE_LOADER_H_
#define TILEFARM_CYCLE_LOADER_H_

#include <cstdint>

#include "../encoding.h"
#include "memory_port.h"

namespace tilefarm {

class Loader {
 public:
  Loader(Client client, const Config& config) : client_(client), config_(config) {}

  void start(const Instruction& load, uint32_t element_nbytes);  // busy from the next cycle on
  bool done() const { return commands_done_ && in_flight_ == 0 && padding() == 0; }
  void release() { busy_ = false; }
  bool waits(const MemoryPort& port) const;  // nothing arrives or is padded in this cycle
  void step(MemoryPort& port);

  uint64_t steady_cycles(const MemoryPort& port, uint64_t limit) const;
  void jump(uint64_t cycles, const MemoryPort& port);

 private:
  uint64_t padding() const { return pads_before_ + skips_ + pads_after_; }
  void plan_padding(const Instruction& load);
  void begin_row();
  void issue(MemoryPort& port);
  void pad(bool data_fires);

  Client client_;
  Config config_;
  bool busy_ = false, fresh_ = false, wide_ = false;
  // Commands.
  uint32_t y_skip_ = 0;
  bool commands_done_ = false;
  uint64_t row_begin_ = 0, address_ = 0, pitch_nbytes_ = 0, row_nbytes_ = 0;
  uint32_t row_ = 0, rows_ = 0;
  uint64_t row_beats_left_ = 0;
  // Data.
  uint64_t in_flight_ = 0;
  bool pipe_valid_ = false;
  // Padding: elements that take free cycles, then cycles that are skipped, then elements again.
  uint32_t pad_delay_ = 0;
  uint64_t pads_before_ = 0, skips_ = 0, pads_after_ = 0;
};

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_LOADER_H_
