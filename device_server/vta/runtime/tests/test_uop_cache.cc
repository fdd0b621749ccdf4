// Recording rules, residency, and eviction without losing what earlier loads refer to.

#include <memory>
#include <vector>

#include "check.h"
#include "uop_cache.h"
#include "uop_kernel.h"

using namespace tilefarm;

namespace {

const Encoding kEncoding{Config{}};

std::unique_ptr<UopKernel> kernel_of(uint32_t count, uint32_t src = 0) {
  auto kernel = std::make_unique<UopKernel>();
  for (uint32_t k = 0; k < count; ++k) {
    UopPush push;
    push.uop = {k % 4, src, 0};
    kernel->push(push, kEncoding);
  }
  return kernel;
}

void loops_become_iterations() {
  UopKernel gemm;
  gemm.begin_loop({5, 1, 2, 3});
  UopPush push;
  gemm.push(push, kEncoding);
  gemm.end_loop();
  gemm.finish(UopMode::kGemm);
  CHECK(gemm.instruction().iter_out == 5 && gemm.instruction().iter_in == 1);
  CHECK(gemm.instruction().wgt_out == 3);

  UopKernel alu;
  alu.begin_loop({5, 1, 2, 0});
  push.mode = UopMode::kAlu;
  alu.push(push, kEncoding);
  alu.end_loop();
  CHECK(alu.instruction().iter_out == 1 && alu.instruction().iter_in == 5);
  CHECK(alu.instruction().src_in == 2);
}

void recording_has_rules() {
  UopKernel kernel;
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.end_loop());
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.finish(UopMode::kGemm));
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.begin_loop({0, 0, 0, 0}));
  kernel.begin_loop({1, 0, 0, 0});
  kernel.begin_loop({1, 0, 0, 0});
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.begin_loop({1, 0, 0, 0}));
  UopPush push;
  kernel.push(push, kEncoding);
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.push(push, kEncoding));
  push.uop.dst = 1;
  push.reset = 1;
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.push(push, kEncoding));
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.finish(UopMode::kGemm));
  kernel.end_loop();
  kernel.end_loop();
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, kernel.finish(UopMode::kAlu));
  kernel.finish(UopMode::kGemm);
}

void closures_are_one_small_int() {
  int32_t value = 98;
  CHECK(closure_key(nullptr, 0) == 0);
  CHECK(closure_key(&value, 4) == 99);
  value = 99;
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, closure_key(&value, 4));
  CHECK_FAULT(TILEFARM_VTA_BAD_RECORDING, closure_key(&value, 8));
}

void a_slot_with_an_unknown_handle_counts_as_empty() {
  UopSites sites;
  void* slot = reinterpret_cast<void*>(0x1234);
  UopSite& site = sites.at(&slot);
  CHECK(slot != reinterpret_cast<void*>(0x1234) && &sites.at(&slot) == &site);
  void* other = nullptr;
  CHECK(&sites.at(&other) != &site);
}

void resident_kernels_are_loaded_once() {
  UopCache cache(16);
  const auto a = kernel_of(6, 1), b = kernel_of(6, 2);
  CHECK(cache.admit(*a) && !cache.admit(*a) && cache.admit(*b));
  CHECK(a->place.sram_begin == 0 && b->place.sram_begin == 6);
  CHECK(b->place.dram_index == 6 && cache.image().size() == 12);
}

void equal_micro_ops_are_loaded_once() {
  UopCache cache(16);
  const auto a = kernel_of(6, 1), same = kernel_of(6, 1), c = kernel_of(12, 2);
  CHECK(cache.admit(*a) && !cache.admit(*same) && !cache.admit(*same));
  CHECK(same->place.sram_begin == 0 && cache.image().size() == 6);
  CHECK(cache.admit(*c) && !a->place.resident && !same->place.resident);
  CHECK(cache.admit(*same) && same->place.sram_begin == 0 && !cache.admit(*a));
  CHECK(cache.image().size() == 18);
}

void the_original_loads_equal_micro_ops_again_and_cannot_evict() {
  UopCache cache(16, true);
  const auto a = kernel_of(6, 1), same = kernel_of(6, 1), c = kernel_of(5, 2);
  CHECK(cache.admit(*a) && cache.admit(*same) && !cache.admit(*a) && !cache.admit(*same));
  CHECK(same->place.sram_begin == 6 && cache.image().size() == 12);
  CHECK_FAULT(TILEFARM_VTA_SRAM_RANGE, cache.admit(*c));
  cache.clear();
  CHECK(cache.admit(*c) && c->place.sram_begin == 0);
}

void evicted_kernels_stay_in_the_image() {
  UopCache cache(16);
  const auto a = kernel_of(6, 1), b = kernel_of(6, 2), c = kernel_of(8, 3);
  cache.admit(*a);
  cache.admit(*b);
  CHECK(cache.admit(*c));
  CHECK(c->place.sram_begin == 0 && !a->place.resident && !b->place.resident);
  CHECK(cache.image().size() == 20 && cache.image()[0] == a->words()[0]);
  CHECK(cache.admit(*a));
  CHECK(a->place.sram_begin == 8 && a->place.dram_index == 0 && cache.image().size() == 20);
}

void a_new_run_starts_empty() {
  UopCache cache(16);
  const auto a = kernel_of(6), b = kernel_of(20);
  cache.admit(*a);
  cache.clear();
  CHECK(cache.image().empty() && cache.admit(*a) && cache.image().size() == 6);
  CHECK_FAULT(TILEFARM_VTA_SRAM_RANGE, cache.admit(*b));
}

}  // namespace

int main() {
  loops_become_iterations();
  recording_has_rules();
  closures_are_one_small_int();
  a_slot_with_an_unknown_handle_counts_as_empty();
  resident_kernels_are_loaded_once();
  equal_micro_ops_are_loaded_once();
  the_original_loads_equal_micro_ops_again_and_cannot_evict();
  evicted_kernels_stay_in_the_image();
  a_new_run_starts_empty();
}
