#include "token_order.h"

#include "describe.h"
#include "error.h"

namespace tilefarm {
namespace {

struct Lane {
  std::vector<size_t> order;
  size_t next = 0;
  bool done() const { return next == order.size(); }
};

void require_finish_at_end(const std::vector<Instruction>& instructions) {
  for (size_t k = 0; k < instructions.size(); ++k) {
    const bool last = k + 1 == instructions.size();
    if ((instructions[k].op() == Opcode::kFinish) == last) continue;
    fail(TILEFARM_VTA_BAD_INSTRUCTION, "instruction %zu of %zu: %s", k, instructions.size(),
         last ? "the stream does not end with FINISH" : "FINISH before the end of the stream");
  }
  if (instructions.empty()) fail(TILEFARM_VTA_BAD_INSTRUCTION, "an empty stream has no FINISH");
}

void move_tokens(Tokens& tokens, TokenMask mask, int64_t change) {
  for (int q = 0; q < kTokenQueues; ++q) {
    if (mask >> q & 1) tokens[q] += static_cast<uint64_t>(change);
  }
}

void execute_with_place(const std::vector<Instruction>& instructions, size_t index,
                        const std::function<void(size_t)>& execute) {
  try {
    execute(index);
  } catch (Fault& fault) {
    fault.why = "instruction " + std::to_string(index) + " (" + describe(instructions[index]) +
                "): " + fault.why;
    throw;
  }
}

}  // namespace

std::string deadlock_story(const std::vector<Instruction>& instructions,
                           const std::vector<size_t>& heads, const Tokens& tokens) {
  std::string story = "deadlock";
  for (int m = 0; m < kModules; ++m) {
    const size_t head = heads[static_cast<size_t>(m)];
    story += std::string(m ? "; " : ": ") + module_name(static_cast<Module>(m));
    if (head == instructions.size()) {
      story += " is done";
      continue;
    }
    story += " waits for";
    const TokenMask pops = token_use(instructions[head]).pops;
    for (int q = 0; q < kTokenQueues; ++q) {
      if ((pops >> q & 1) && tokens[q] == 0) story += std::string(" ") + kTokenQueueNames[q];
    }
    story += " at instruction " + std::to_string(head) + " (" + describe(instructions[head]) + ")";
  }
  return story;
}

void run_in_token_order(const std::vector<Instruction>& instructions, Tokens& tokens,
                        const std::function<void(size_t)>& execute) {
  require_finish_at_end(instructions);
  std::vector<TokenUse> uses;
  uses.reserve(instructions.size());
  Lane lanes[kModules];
  for (size_t k = 0; k < instructions.size(); ++k) {
    uses.push_back(token_use(instructions[k]));
    lanes[static_cast<size_t>(instructions[k].module())].order.push_back(k);
  }
  const auto step = [&](Module module) {
    Lane& lane = lanes[static_cast<size_t>(module)];
    if (lane.done() || !available(tokens, uses[lane.order[lane.next]].pops)) return false;
    const size_t index = lane.order[lane.next++];
    move_tokens(tokens, uses[index].pops, -1);
    execute_with_place(instructions, index, execute);
    move_tokens(tokens, uses[index].pushes, +1);
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    while (step(Module::kStore)) progress = true;
    while (step(Module::kLoad)) progress = true;
    if (step(Module::kCompute)) progress = true;
  }
  if (lanes[0].done() && lanes[1].done() && lanes[2].done()) return;
  std::vector<size_t> heads;
  for (const Lane& lane : lanes) {
    heads.push_back(lane.done() ? instructions.size() : lane.order[lane.next]);
  }
  fail(TILEFARM_VTA_DEADLOCK, "%s", deadlock_story(instructions, heads, tokens).c_str());
}

}  // namespace tilefarm
