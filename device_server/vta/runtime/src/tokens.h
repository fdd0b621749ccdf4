// The four token counters between load, compute and store.
#ifndef TILEFARM_TOKENS_H_
#define TILEFARM_TOKENS_H_

#include <array>
#include <cstdint>

#include "encoding.h"

namespace tilefarm {

enum TokenQueue { kLoadToCompute, kComputeToLoad, kComputeToStore, kStoreToCompute, kTokenQueues };

constexpr std::array<const char*, kTokenQueues> kTokenQueueNames = {
    "load->compute", "compute->load", "compute->store", "store->compute"};

using Tokens = std::array<uint64_t, kTokenQueues>;
using TokenMask = uint32_t;  // bit q set: queue q

// Queues that the instruction takes a token from before it starts, and gives one to when done.
struct TokenUse {
  TokenMask pops = 0;
  TokenMask pushes = 0;
};

// BAD_INSTRUCTION when the module has no such neighbour.
TokenUse token_use(const Instruction& instruction);

inline bool available(const Tokens& tokens, TokenMask mask) {
  for (int q = 0; q < kTokenQueues; ++q) {
    if ((mask >> q & 1) && tokens[q] == 0) return false;
  }
  return true;
}

}  // namespace tilefarm

#endif  // TILEFARM_TOKENS_H_
