// Executes a stream module by module in an order that the tokens allow, and tells when there is
// none.
#ifndef TILEFARM_TOKEN_ORDER_H_
#define TILEFARM_TOKEN_ORDER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "encoding.h"
#include "tokens.h"

namespace tilefarm {

// Calls execute(index) once for every instruction. Store and load run as far as their tokens reach
// before compute takes one step; so the order is always the same, and a STORE sees the results that
// hardware's separate OUT buffer still has when a later LOAD or reset of ACC is not ordered against
// it. `tokens` is updated. Throws DEADLOCK with the wait of every module when nobody can go on,
// BAD_INSTRUCTION when the stream does not end with its only FINISH.
void run_in_token_order(const std::vector<Instruction>& instructions, Tokens& tokens,
                        const std::function<void(size_t)>& execute);

// "load waits for compute->load at instruction 7 (LOAD INP 1x4)"; `heads` has a position per
// module, instructions.size() for a module that is done.
std::string deadlock_story(const std::vector<Instruction>& instructions,
                           const std::vector<size_t>& heads, const Tokens& tokens);

}  // namespace tilefarm

#endif  // TILEFARM_TOKEN_ORDER_H_
