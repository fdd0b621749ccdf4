// Accesses that a token orders pass; the same ones without it do not.

#include <vector>

#include "check.h"
#include "command_queue.h"
#include "hazards.h"
#include "token_order.h"

using namespace tilefarm;

namespace {

const Config kConfig;
const Encoding kEncoding{kConfig};
const std::vector<Uop> kUops(1);  // ACC 0, INP 0, WGT 0

Instruction transfer(Opcode opcode, Memory memory) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.memory = static_cast<uint32_t>(memory);
  f.y_size = f.x_size = f.x_stride = 1;
  return f;
}

Instruction gemm(uint32_t reset) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kGemm);
  f.reset = reset;
  f.uop_end = f.iter_out = f.iter_in = 1;
  return f;
}

const Instruction kLoadInp = transfer(Opcode::kLoad, Memory::kInp);
const Instruction kLoadAcc = transfer(Opcode::kLoad, Memory::kAcc);
const Instruction kStoreOut = transfer(Opcode::kStore, Memory::kOut);

void hand_over(CommandQueue& queue, Module from, Module to) {
  queue.push_dependence(from, to);
  queue.pop_dependence(from, to);
}

void check(CommandQueue& queue) {
  queue.close();
  HazardChecker checker(kConfig);
  Tokens tokens{};
  checker.begin(queue.instructions(), tokens);
  run_in_token_order(queue.instructions(), tokens, [&](size_t k) { checker.visit(k, kUops); });
}

// load, product, store, and a second product; tokens between neighbours where asked for.
void two_products(bool load_to_compute, bool compute_to_store, bool store_to_compute,
                  bool second_resets = false) {
  CommandQueue queue(kEncoding);
  queue.append(kLoadInp);
  if (load_to_compute) hand_over(queue, Module::kLoad, Module::kCompute);
  queue.append(gemm(0));
  if (compute_to_store) hand_over(queue, Module::kCompute, Module::kStore);
  queue.append(kStoreOut);
  if (store_to_compute) hand_over(queue, Module::kStore, Module::kCompute);
  queue.append(gemm(second_resets));
  queue.append(kLoadAcc);
  check(queue);
}

void a_load_must_wait_for_the_last_reader() {
  CommandQueue queue(kEncoding);
  queue.append(kLoadInp);
  hand_over(queue, Module::kLoad, Module::kCompute);
  queue.append(gemm(0));
  queue.append(kLoadInp);
  const std::string why = fault_of(TILEFARM_VTA_HAZARD, [&] { check(queue); });
  CHECK(why.find("INP element 0, but no token orders it") != std::string::npos);
}

void a_token_orders_what_came_before_it() {
  CommandQueue queue(kEncoding);
  queue.append(kLoadInp);
  hand_over(queue, Module::kLoad, Module::kCompute);
  queue.append(gemm(0));
  hand_over(queue, Module::kCompute, Module::kLoad);
  queue.append(kLoadInp);
  hand_over(queue, Module::kLoad, Module::kCompute);
  queue.append(gemm(0));
  check(queue);
}

}  // namespace

int main() {
  two_products(true, true, true);
  CHECK_FAULT(TILEFARM_VTA_HAZARD, two_products(false, true, true));
  CHECK_FAULT(TILEFARM_VTA_HAZARD, two_products(true, false, true));
  CHECK_FAULT(TILEFARM_VTA_HAZARD, two_products(true, true, false));
  two_products(true, true, false, true);
  a_load_must_wait_for_the_last_reader();
  a_token_orders_what_came_before_it();
}
