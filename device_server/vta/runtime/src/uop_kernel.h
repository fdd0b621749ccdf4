// Recording of micro-op kernels: what the functions of one call site push, kept for later calls.
#ifndef TILEFARM_UOP_KERNEL_H_
#define TILEFARM_UOP_KERNEL_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "encoding.h"

namespace tilefarm {

// One VTAUopPush: the micro-op and what must be the same for a whole kernel.
struct UopPush {
  UopMode mode = UopMode::kGemm;
  uint32_t reset = 0;
  Uop uop;
  uint32_t alu_opcode = 0, use_imm = 0;
  int32_t imm = 0;
};

struct UopLoop {
  uint32_t extent = 1, dst_factor = 0, src_factor = 0, wgt_factor = 0;
};

// Micro-ops inside up to two loops. The rules of recording are those of the original runtime.
class UopKernel {
 public:
  void begin_loop(const UopLoop& loop);
  void end_loop();
  void push(const UopPush& push, const Encoding& encoding);
  void finish(UopMode wanted) const;  // BAD_RECORDING unless complete and of that mode

  const std::vector<uint32_t>& words() const { return words_; }
  Instruction instruction() const;  // without the place of the micro-ops

  // Where the kernel lies now; managed by UopCache.
  struct Place {
    uint64_t epoch = 0;       // of the run in which it was put into DRAM
    uint32_t dram_index = 0;  // in micro-ops from the begin of the DRAM image
    bool resident = false;
    uint32_t sram_begin = 0;
  } place;

 private:
  UopPush head_;
  std::vector<UopLoop> loops_;
  size_t open_loops_ = 0;
  std::vector<uint32_t> words_;
  std::vector<uint32_t> destinations_;
};

// Kernels of one call site by the value of its closure: at most one int from 0 to 98.
class UopSite {
 public:
  UopKernel* find(uint32_t key) const;
  UopKernel* keep(uint32_t key, std::unique_ptr<UopKernel> kernel);

 private:
  std::unordered_map<uint32_t, std::unique_ptr<UopKernel>> kernels_;
};

// BAD_RECORDING unless the closure is empty or one small int.
uint32_t closure_key(const void* closure, int nbytes);

// All call sites, by the handle that a site keeps in a static slot of its own. A slot that holds
// anything unknown (a site of an object that was unloaded) counts as empty.
class UopSites {
 public:
  UopSite& at(void** handle);

 private:
  // Never given twice in a process: slots outlive runtimes.
  static inline uintptr_t last_id_ = 0;
  std::unordered_map<uintptr_t, UopSite> sites_;
};

}  // namespace tilefarm

#endif  // TILEFARM_UOP_KERNEL_H_
