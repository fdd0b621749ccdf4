// The exported functions from C's point of view: errors are kept, queues stop, nothing aborts.

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "tilefarm_vta.h"
#include "vta_runtime.h"

namespace {

constexpr uint32_t kAcc = 3, kOut = 4, kAcc8 = 5;

std::string why() {
  char text[1024];
  tilefarm_vta_last_error(text, sizeof text);
  return text;
}

tilefarm_vta_config defaults() {
  return {0, 4, 3, 3, 5, 15, 15, 18, 17, 8, 8, 16, 512, 16, 0, 0, 0, 0};
}

void configure() {
  const tilefarm_vta_config config = defaults();
  CHECK(tilefarm_vta_configure(&config) == TILEFARM_VTA_OK);
}

// Adds the closure's value to ACC tile 0.
int record_add(void* closure) {
  int32_t value;
  std::memcpy(&value, closure, sizeof value);
  VTAUopPush(1, 0, 0, 0, 0, 2, 1, value);
  return 0;
}

// Loads 16 int8 into ACC, adds 1 and 2, stores them.
void add_three(void* from, void* to) {
  static void* site;
  void* cmd = VTATLSCommandHandle();
  VTALoadBuffer2D(cmd, from, 0, 1, 1, 1, 0, 0, 0, 0, 0, kAcc8);
  for (int32_t value : {1, 2}) VTAPushALUOp(&site, record_add, &value, sizeof value);
  VTADepPush(cmd, 2, 3);
  VTADepPop(cmd, 2, 3);
  VTAStoreBuffer2D(cmd, 0, kOut, to, 0, 1, 1, 1);
  VTASynchronize(cmd, 1u << 31);
}

void kernels_are_kept_by_site_and_closure() {
  configure();
  void* from = VTABufferAlloc(16);
  void* to = VTABufferAlloc(16);
  const std::vector<int8_t> given = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, 126, 127};
  std::vector<int8_t> got(16);
  for (int debug : {0, 1 << 5, 0}) {
    VTASetDebugMode(nullptr, debug);
    VTABufferCopy(given.data(), 0, from, 0, 16, 1);
    add_three(from, to);
    VTABufferCopy(to, 0, got.data(), 0, 16, 2);
    CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_OK);
    for (size_t k = 0; k < 16; ++k) CHECK(got[k] == static_cast<int8_t>(given[k] + 3));
    CHECK(tilefarm_vta_check_idle() == TILEFARM_VTA_OK);
  }
  tilefarm_vta_counters counters;
  tilefarm_vta_read_counters(&counters);
  CHECK(counters.alu_uops == 6 && counters.acc_load_nbytes == 48 && counters.cycles > 0);
}

void an_error_stops_the_queue_until_it_is_cleared() {
  configure();
  int on_the_stack = 0;
  VTALoadBuffer2D(nullptr, &on_the_stack, 0, 1, 1, 1, 0, 0, 0, 0, 0, kAcc);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_BAD_ARGUMENT);
  CHECK(why().find("not a data buffer") != std::string::npos);
  VTADepPop(nullptr, 9, 9);
  VTASynchronize(nullptr, 1);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_BAD_ARGUMENT);
  tilefarm_vta_clear_error();
  VTASynchronize(nullptr, 1);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_OK);
  tilefarm_vta_counters counters;
  tilefarm_vta_read_counters(&counters);
  CHECK(counters.cycles == 36 && counters.instructions == 4);
}

void micro_ops_outside_of_a_recording_are_refused() {
  configure();
  VTAUopPush(0, 0, 0, 0, 0, 0, 0, 0);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_BAD_RECORDING);
}

void copies_stay_inside_their_buffer() {
  configure();
  void* buffer = VTABufferAlloc(16);
  char bytes[32] = {};
  VTABufferCopy(bytes, 0, buffer, 8, 9, 1);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_DRAM_RANGE);
  CHECK(VTABufferCPUPtr(nullptr, bytes) == bytes);
  VTABufferFree(buffer);
  CHECK(VTABufferCPUPtr(nullptr, buffer) == buffer);
}

void a_bad_configuration_leaves_the_old_one() {
  configure();
  tilefarm_vta_config bad = defaults();
  bad.bus_nbytes = 3;
  CHECK(tilefarm_vta_configure(&bad) == TILEFARM_VTA_BAD_CONFIG);
  CHECK(tilefarm_vta_configure(nullptr) == TILEFARM_VTA_BAD_ARGUMENT);
  tilefarm_vta_clear_error();
  VTASynchronize(nullptr, 1);
  CHECK(tilefarm_vta_last_error(nullptr, 0) == TILEFARM_VTA_OK);
  VTARuntimeShutdown();
}

}  // namespace

int main() {
  kernels_are_kept_by_site_and_closure();
  an_error_stops_the_queue_until_it_is_cleared();
  micro_ops_outside_of_a_recording_are_refused();
  copies_stay_inside_their_buffer();
  a_bad_configuration_leaves_the_old_one();
}
