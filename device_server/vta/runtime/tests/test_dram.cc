// Addresses of data buffers, and which accesses are inside one.

#include "check.h"
#include "dram.h"

using namespace tilefarm;

namespace {

void addresses_are_page_aligned_and_reused() {
  Dram dram(2048);
  const DataBuffer* a = dram.allocate(5000);
  const DataBuffer* b = dram.allocate(16);
  CHECK(a->address == 0x1000 && b->address == 0x3000);
  dram.release(a);
  CHECK(dram.allocate(8000)->address == 0x1000);
  CHECK(dram.allocate(9000)->address == 0x4000);
}

void wide_bursts_align_buffers_further() {
  Dram dram(16384);
  CHECK(dram.allocate(1)->address == 16384 && dram.allocate(1)->address == 32768);
}

void accesses_lie_in_one_buffer() {
  Dram dram(2048);
  DataBuffer* a = dram.allocate(4096);
  dram.allocate(4096);
  CHECK(dram.at(a->address, 4096) == a->host);
  CHECK(dram.at(a->address + 4095, 1) == a->host + 4095);
  CHECK(dram.at(a->address + 4095, 2) == nullptr);
  CHECK(dram.at(0, 1) == nullptr && dram.at(UINT64_MAX, 1) == nullptr);
  CHECK(dram.at(a->address, UINT64_MAX) == nullptr);
  const uint64_t address = a->address;
  dram.release(a);
  CHECK(dram.at(address, 1) == nullptr && dram.find(a) == nullptr);
  CHECK_FAULT(TILEFARM_VTA_BAD_ARGUMENT, dram.release(a));
}

void a_view_hides_the_buffers() {
  Dram dram(2048);
  const DataBuffer* a = dram.allocate(16);
  uint8_t image[8] = {};
  {
    const DramView view(dram, image, sizeof image);
    CHECK(dram.at(0, 8) == image && dram.at(0, 9) == nullptr);
    CHECK(dram.at(a->address, 1) == nullptr);
  }
  CHECK(dram.at(a->address, 16) == a->host);
}

void absurd_sizes_are_refused() {
  Dram dram(2048);
  CHECK_FAULT(TILEFARM_VTA_NO_MEMORY, dram.allocate(SIZE_MAX));
}

}  // namespace

int main() {
  addresses_are_page_aligned_and_reused();
  wide_bursts_align_buffers_further();
  accesses_lie_in_one_buffer();
  a_view_hides_the_buffers();
  absurd_sizes_are_refused();
}
