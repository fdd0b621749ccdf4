#include "tokens.h"

#include "error.h"

namespace tilefarm {
namespace {

constexpr int kNone = -1;

// For each module: queue of pop_prev, pop_next, push_prev, push_next.
constexpr int kQueues[kModules][4] = {
    {kNone, kComputeToLoad, kNone, kLoadToCompute},
    {kLoadToCompute, kStoreToCompute, kComputeToLoad, kComputeToStore},
    {kComputeToStore, kNone, kStoreToCompute, kNone},
};

}  // namespace

TokenUse token_use(const Instruction& f) {
  const int* queues = kQueues[static_cast<int>(f.module())];
  const uint32_t flags[4] = {f.pop_prev, f.pop_next, f.push_prev, f.push_next};
  TokenUse use;
  for (int k = 0; k < 4; ++k) {
    if (!flags[k]) continue;
    if (queues[k] == kNone) {
      fail(TILEFARM_VTA_BAD_INSTRUCTION, "a token for a neighbour that the module does not have");
    }
    (k < 2 ? use.pops : use.pushes) |= 1u << queues[k];
  }
  return use;
}

}  // namespace tilefarm
