// Dependence merging: which instruction carries which token.

#include <string>
#include <vector>

#include "check.h"
#include "command_queue.h"
#include "describe.h"
#include "token_order.h"

using namespace tilefarm;

namespace {

const Encoding kEncoding{Config{}};

Instruction transfer(Opcode opcode, Memory memory) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.memory = static_cast<uint32_t>(memory);
  f.y_size = f.x_size = f.x_stride = 1;
  return f;
}

const Instruction kLoadInp = transfer(Opcode::kLoad, Memory::kInp);
const Instruction kLoadAcc = transfer(Opcode::kLoad, Memory::kAcc);
const Instruction kStoreOut = transfer(Opcode::kStore, Memory::kOut);

// "LOAD INP 1x1 0001": flags are pop_prev, pop_next, push_prev, push_next.
std::vector<std::string> lines(const CommandQueue& queue) {
  std::vector<std::string> text;
  for (const Instruction& f : queue.instructions()) {
    std::string flags;
    for (uint32_t bit : {f.pop_prev, f.pop_next, f.push_prev, f.push_next}) {
      flags += bit ? '1' : '0';
    }
    text.push_back(describe(f) + " " + flags);
  }
  return text;
}

using Lines = std::vector<std::string>;

void an_empty_synchronization_is_four_instructions() {
  CommandQueue queue(kEncoding);
  queue.close();
  CHECK((lines(queue) ==
         Lines{"NOP store 0010", "NOP load 0001", "NOP compute 1100", "FINISH 0000"}));
}

void a_push_goes_to_the_last_instruction_of_its_stage() {
  CommandQueue queue(kEncoding);
  queue.append(kLoadInp);
  queue.push_dependence(Module::kLoad, Module::kCompute);
  queue.pop_dependence(Module::kLoad, Module::kCompute);
  queue.append(kLoadAcc);
  CHECK((lines(queue) == Lines{"LOAD INP 1x1 0001", "LOAD ACC 1x1 1000"}));
}

void a_push_after_another_stage_needs_a_nop() {
  CommandQueue queue(kEncoding);
  queue.append(kLoadInp);
  queue.append(kLoadAcc);
  queue.push_dependence(Module::kLoad, Module::kCompute);
  CHECK((lines(queue) == Lines{"LOAD INP 1x1 0000", "LOAD ACC 1x1 0000", "NOP load 0001"}));
}

void a_second_token_on_the_same_side_needs_a_nop() {
  CommandQueue queue(kEncoding);
  queue.append(kStoreOut);
  queue.push_dependence(Module::kStore, Module::kCompute);
  queue.push_dependence(Module::kStore, Module::kCompute);
  queue.pop_dependence(Module::kStore, Module::kCompute);
  queue.pop_dependence(Module::kStore, Module::kCompute);
  queue.append(kLoadAcc);
  CHECK((lines(queue) ==
         Lines{"STORE OUT 1x1 0010", "NOP store 0010", "NOP compute 0100", "LOAD ACC 1x1 0100"}));
}

void store_nops_carry_pushes_and_load_nops_do_not() {
  CommandQueue queue(kEncoding);
  queue.pop_dependence(Module::kCompute, Module::kStore);
  queue.push_dependence(Module::kStore, Module::kCompute);
  queue.pop_dependence(Module::kCompute, Module::kLoad);
  queue.push_dependence(Module::kLoad, Module::kCompute);
  CHECK((lines(queue) == Lines{"NOP store 1010", "NOP load 0100", "NOP load 0001"}));
}

void only_neighbours_exchange_tokens() {
  CommandQueue queue(kEncoding);
  CHECK_FAULT(TILEFARM_VTA_BAD_ARGUMENT, queue.push_dependence(Module::kLoad, Module::kStore));
  CHECK_FAULT(TILEFARM_VTA_BAD_ARGUMENT, queue.pop_dependence(Module::kLoad, Module::kLoad));
}

void serial_streams_run_in_program_order() {
  CommandQueue queue(kEncoding);
  for (const Instruction& f : {kLoadInp, kStoreOut, kLoadInp, kLoadAcc, kStoreOut}) queue.append(f);
  queue.close_serial();
  std::vector<size_t> order;
  Tokens tokens{};
  run_in_token_order(queue.instructions(), tokens, [&](size_t k) { order.push_back(k); });
  for (size_t k = 0; k < order.size(); ++k) CHECK(order[k] == k);
  CHECK(tokens == Tokens{});
}

}  // namespace

int main() {
  an_empty_synchronization_is_four_instructions();
  a_push_goes_to_the_last_instruction_of_its_stage();
  a_push_after_another_stage_needs_a_nop();
  a_second_token_on_the_same_side_needs_a_nop();
  store_nops_carry_pushes_and_load_nops_do_not();
  only_neighbours_exchange_tokens();
  serial_streams_run_in_program_order();
}
