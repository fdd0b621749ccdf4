#include "uop_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "error.h"

namespace tilefarm {
namespace {

constexpr size_t kMaxLoops = 2;
constexpr size_t kDestinationDistance = 2;  // micro-ops that must pass before a dst comes again
constexpr int32_t kMaxClosureValue = 98;

bool same_head(const UopPush& a, const UopPush& b) {
  if (a.mode != b.mode || a.reset != b.reset) return false;
  if (a.mode == UopMode::kGemm) return true;
  return a.alu_opcode == b.alu_opcode && a.use_imm == b.use_imm && a.imm == b.imm;
}

}  // namespace

void UopKernel::begin_loop(const UopLoop& loop) {
  if (!words_.empty()) fail(TILEFARM_VTA_BAD_RECORDING, "a loop begins after the first micro-op");
  if (loops_.size() == kMaxLoops) fail(TILEFARM_VTA_BAD_RECORDING, "more than two loops");
  if (loop.extent == 0) fail(TILEFARM_VTA_BAD_RECORDING, "a loop of extent 0");
  loops_.push_back(loop);
  ++open_loops_;
}

void UopKernel::end_loop() {
  if (open_loops_ == 0) fail(TILEFARM_VTA_BAD_RECORDING, "a loop ends that did not begin");
  --open_loops_;
}

void UopKernel::push(const UopPush& push, const Encoding& encoding) {
  if (words_.empty()) {
    head_ = push;
  } else if (!same_head(head_, push)) {
    fail(TILEFARM_VTA_BAD_RECORDING, "mode, reset or ALU operation changes inside a kernel");
  }
  const size_t recent = std::min(kDestinationDistance, destinations_.size());
  if (std::find(destinations_.end() - static_cast<ptrdiff_t>(recent), destinations_.end(),
                push.uop.dst) != destinations_.end()) {
    fail(TILEFARM_VTA_BAD_RECORDING, "dst %u is written again within three micro-ops",
         push.uop.dst);
  }
  words_.push_back(encoding.encode_uop(push.uop));
  destinations_.push_back(push.uop.dst);
}

void UopKernel::finish(UopMode wanted) const {
  if (open_loops_ != 0) fail(TILEFARM_VTA_BAD_RECORDING, "a loop was not ended");
  if (words_.empty()) fail(TILEFARM_VTA_BAD_RECORDING, "a kernel without micro-ops");
  if (head_.mode != wanted) {
    fail(TILEFARM_VTA_BAD_RECORDING, "%s micro-ops pushed as %s",
         head_.mode == UopMode::kGemm ? "GEMM" : "ALU", wanted == UopMode::kGemm ? "GEMM" : "ALU");
  }
}

// A single loop is the outer one of a GEMM but the inner one of an ALU instruction, as in the
// original.
Instruction UopKernel::instruction() const {
  const bool alu = head_.mode == UopMode::kAlu;
  UopLoop outer, inner;
  if (loops_.size() == 2) {
    outer = loops_[0];
    inner = loops_[1];
  } else if (loops_.size() == 1) {
    (alu ? inner : outer) = loops_[0];
  }
  Instruction f;
  f.opcode = static_cast<uint32_t>(alu ? Opcode::kAlu : Opcode::kGemm);
  f.reset = head_.reset;
  f.iter_out = outer.extent;
  f.iter_in = inner.extent;
  f.dst_out = outer.dst_factor;
  f.dst_in = inner.dst_factor;
  f.src_out = outer.src_factor;
  f.src_in = inner.src_factor;
  if (alu) {
    f.alu_opcode = head_.alu_opcode;
    f.use_imm = head_.use_imm;
    f.imm = head_.imm;
  } else {
    f.wgt_out = outer.wgt_factor;
    f.wgt_in = inner.wgt_factor;
  }
  return f;
}

UopKernel* UopSite::find(uint32_t key) const {
  const auto found = kernels_.find(key);
  return found == kernels_.end() ? nullptr : found->second.get();
}

UopKernel* UopSite::keep(uint32_t key, std::unique_ptr<UopKernel> kernel) {
  return (kernels_[key] = std::move(kernel)).get();
}

uint32_t closure_key(const void* closure, int nbytes) {
  if (nbytes == 0) return 0;
  int32_t value = 0;
  if (nbytes != static_cast<int>(sizeof value) || closure == nullptr) {
    fail(TILEFARM_VTA_BAD_RECORDING, "a closure of %d bytes; it may hold one int", nbytes);
  }
  std::memcpy(&value, closure, sizeof value);
  if (value < 0 || value > kMaxClosureValue) {
    fail(TILEFARM_VTA_BAD_RECORDING, "closure value %d is not within 0..%d", value,
         kMaxClosureValue);
  }
  return static_cast<uint32_t>(value) + 1;
}

UopSite& UopSites::at(void** handle) {
  const auto id = reinterpret_cast<uintptr_t>(*handle);
  const auto found = sites_.find(id);
  if (found != sites_.end()) return found->second;
  *handle = reinterpret_cast<void*>(++last_id_);
  return sites_[last_id_];
}

}  // namespace tilefarm
