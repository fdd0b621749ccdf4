// Derived sizes of the default accelerator, and accelerators that cannot be.

#include "check.h"
#include "config.h"

using namespace tilefarm;

namespace {

tilefarm_vta_config defaults() {
  return {0, 4, 3, 3, 5, 15, 15, 18, 17, 8, 8, 16, 512, 16, 0, 0, 0, 0};
}

void sizes_are_those_of_hw_spec_const() {
  const Config c = config_of(defaults());
  CHECK(c.uop_depth() == 8192 && c.inp_depth() == 2048);
  CHECK(c.wgt_depth() == 1024 && c.acc_depth() == 2048);
  CHECK(c.element_nbytes(Memory::kInp) == 16 && c.wgt_nbytes() == 256);
  CHECK(c.acc_nbytes() == 64 && c.out_nbytes() == 16);
  CHECK(c.burst_nbytes() == 2048);
}

template <typename Change>
void refused(const Change& change) {
  tilefarm_vta_config raw = defaults();
  change(raw);
  CHECK_FAULT(TILEFARM_VTA_BAD_CONFIG, config_of(raw));
}

}  // namespace

int main() {
  sizes_are_those_of_hw_spec_const();
  refused([](auto& c) { c.log_inp_width = 2; });
  refused([](auto& c) { c.log_block = -1; });
  refused([](auto& c) { c.log_block = 7; });
  refused([](auto& c) { c.log_acc_buff_size = 3; });
  refused([](auto& c) { c.log_acc_buff_size = 18; });
  refused([](auto& c) { c.log_uop_buff_size = 16; });
  refused([](auto& c) { c.log_uop_buff_size = 1000; });
  refused([](auto& c) { c.bus_nbytes = 12; });
  refused([](auto& c) { c.log_burst_beats = 0; });
  refused([](auto& c) { c.dram_delay_cycles = -1; });
  refused([](auto& c) { c.queue_entries = 0; });
  refused([](auto& c) { c.features = 4; });
}
