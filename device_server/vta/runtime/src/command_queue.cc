#include "command_queue.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace tilefarm {
namespace {

constexpr uint64_t kClosingInstructions = 6;

void require_neighbours(Module from, Module to) {
  const bool neighbours = (from == Module::kCompute) != (to == Module::kCompute);
  if (!neighbours) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "no tokens go from module %u to module %u",
         static_cast<unsigned>(from), static_cast<unsigned>(to));
  }
}

Instruction nop(Module module) {
  Instruction f;
  const bool store = module == Module::kStore;
  f.opcode = static_cast<uint32_t>(store ? Opcode::kStore : Opcode::kLoad);
  f.memory = static_cast<uint32_t>(module == Module::kLoad ? Memory::kInp : Memory::kUop);
  return f;
}

Instruction finish() {
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kFinish);
  return f;
}

// Empty loads belong to no stage for the purpose of carrying a push; empty stores do.
bool may_carry(const Instruction& last, Module module) {
  return last.module() == module && !(last.op() == Opcode::kLoad && last.x_size == 0);
}

void hand_over(Instruction& before, Instruction& after) {
  if (before.module() == after.module()) return;
  const bool forward = before.module() < after.module();
  (forward ? before.push_next : before.push_prev) = 1;
  (forward ? after.pop_prev : after.pop_next) = 1;
}

}  // namespace

void CommandQueue::append_checked(const Instruction& instruction) {
  encoding_.encode(instruction);
  instructions_.push_back(instruction);
}

void CommandQueue::append(Instruction instruction) {
  Pending& waits = pending(instruction.module());
  instruction.pop_prev = waits.prev;
  instruction.pop_next = waits.next;
  append_checked(instruction);
  waits = {};
}

void CommandQueue::append_nop(Module module, bool push_prev, bool push_next) {
  Instruction f = nop(module);
  f.push_prev = push_prev;
  f.push_next = push_next;
  append(f);
}

void CommandQueue::flush_waits(Module module) {
  if (pending(module).prev || pending(module).next) append_nop(module, false, false);
}

void CommandQueue::push_dependence(Module from, Module to) {
  require_neighbours(from, to);
  flush_waits(from);
  const bool forward = from < to;
  if (!instructions_.empty() && may_carry(instructions_.back(), from)) {
    Instruction& last = instructions_.back();
    uint32_t& bit = forward ? last.push_next : last.push_prev;
    if (!std::exchange(bit, 1u)) return;
  }
  append_nop(from, !forward, forward);
}

void CommandQueue::pop_dependence(Module from, Module to) {
  require_neighbours(from, to);
  const auto side = from < to ? &Pending::prev : &Pending::next;
  if (pending(to).*side) flush_waits(to);
  pending(to).*side = true;
}

void CommandQueue::close() {
  push_dependence(Module::kStore, Module::kCompute);
  push_dependence(Module::kLoad, Module::kCompute);
  pop_dependence(Module::kStore, Module::kCompute);
  pop_dependence(Module::kLoad, Module::kCompute);
  flush_waits(Module::kCompute);
  append_checked(finish());
}

// Dependence bits as written are forgotten: every instruction waits for the one before it. Load and
// store are no neighbours, so a NOP of compute stands between them.
void CommandQueue::close_serial() {
  for (Module module : {Module::kLoad, Module::kCompute, Module::kStore}) flush_waits(module);
  std::vector<Instruction> serial;
  const auto add = [&](Instruction f) {
    f.pop_prev = f.pop_next = f.push_prev = f.push_next = 0;
    if (!serial.empty()) hand_over(serial.back(), f);
    serial.push_back(f);
  };
  for (const Instruction& f : instructions_) {
    const bool far = !serial.empty() && f.module() != serial.back().module() &&
                     f.module() != Module::kCompute && serial.back().module() != Module::kCompute;
    if (far) add(nop(Module::kCompute));
    add(f);
  }
  if (!serial.empty() && serial.back().module() != Module::kCompute) add(nop(Module::kCompute));
  serial.push_back(finish());
  instructions_ = std::move(serial);
}

void CommandQueue::clear() {
  instructions_.clear();
  pending_ = {};
}

std::vector<Word> CommandQueue::words() const {
  std::vector<Word> words;
  words.reserve(instructions_.size());
  for (const Instruction& f : instructions_) words.push_back(encoding_.encode(f));
  return words;
}

bool CommandQueue::empty() const {
  return instructions_.empty() && std::none_of(pending_.begin(), pending_.end(),
                                               [](const Pending& p) { return p.prev || p.next; });
}

bool CommandQueue::nearly_full() const {
  return (instructions_.size() + kClosingInstructions) * kInstructionNbytes > stream_nbytes_;
}

}  // namespace tilefarm
