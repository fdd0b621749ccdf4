// Known times, and that leaping over quiet stretches never changes a result.

#include <random>

#include "check.h"
#include "command_queue.h"
#include "cycle/cycle_model.h"

using namespace tilefarm;

namespace {

Instruction transfer(Opcode opcode, Memory memory, uint32_t y, uint32_t x, uint32_t stride) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.memory = static_cast<uint32_t>(memory);
  f.y_size = y;
  f.x_size = x;
  f.x_stride = stride;
  return f;
}

Instruction compute(Opcode opcode, uint32_t count, bool immediate) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.uop_end = 1;
  f.iter_out = count;
  f.iter_in = 1;
  f.use_imm = immediate;
  return f;
}

// Time of one instruction in an otherwise empty stream.
uint64_t alone(const Instruction& f, const Config& config = Config{}) {
  const Encoding encoding{config};
  CommandQueue queue(encoding);
  queue.append(f);
  queue.close();
  const Span span = count_cycles(config, queue.instructions(), Tokens{}).spans[0];
  return span.end - span.begin;
}

// Durations measured on the RTL, vta-facts 5A.3.
void isolated_durations() {
  CHECK(alone(transfer(Opcode::kLoad, Memory::kInp, 1, 1, 1)) == 24);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kInp, 1, 128, 128)) == 278);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kInp, 16, 1, 1)) == 54);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kWgt, 1, 1, 1)) == 54);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kAcc, 1, 16, 16)) == 150);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kUop, 1, 256, 256)) == 149);
  CHECK(alone(compute(Opcode::kGemm, 1000, false)) == 1006);
  CHECK(alone(compute(Opcode::kAlu, 16, false)) == 38);
  CHECK(alone(compute(Opcode::kAlu, 16, true)) == 22);
  CHECK(alone(transfer(Opcode::kStore, Memory::kOut, 1, 128, 128)) == 387);
  Config de10;
  de10.log_burst_beats = 4;
  CHECK(alone(transfer(Opcode::kStore, Memory::kOut, 1, 128, 128), de10) == 432);
}

void streams_of_nops() {
  const Config config;
  const Encoding encoding{config};
  CommandQueue empty(encoding);
  empty.close();
  CHECK(count_cycles(config, empty.instructions(), Tokens{}).cycles == 36);
}

// Any mixture of instructions, each possibly handing a token to a neighbour that takes it later.
std::vector<Instruction> random_stream(std::mt19937& random, const Encoding& encoding) {
  CommandQueue queue(encoding);
  const Module modules[] = {Module::kLoad, Module::kCompute, Module::kStore};
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (uint32_t k = 0, count = 5 + below(60); k < count; ++k) {
    Instruction f;
    switch (below(7)) {
      case 0:
        f = transfer(Opcode::kLoad, Memory::kInp, 1 + below(9), 1 + below(40), below(50));
        break;
      case 1:
        f = transfer(Opcode::kLoad, Memory::kWgt, 1 + below(3), 1 + below(9), below(12));
        break;
      case 2: f = transfer(Opcode::kLoad, Memory::kUop, 1, 1 + below(300), 1); break;
      case 3:
        f = transfer(Opcode::kLoad, Memory::kAcc, 1 + below(4), 1 + below(9), below(12));
        break;
      case 4:
        f = transfer(Opcode::kStore, Memory::kOut, 1 + below(6), 1 + below(20), below(30));
        break;
      case 5: f = compute(Opcode::kGemm, 1 + below(600), false); break;
      default: f = compute(Opcode::kAlu, 1 + below(200), below(2)); break;
    }
    if (f.op() == Opcode::kLoad && below(2)) {
      f.y_pad_0 = below(4);
      f.y_pad_1 = below(4);
      f.x_pad_0 = below(3);
      f.x_pad_1 = below(3);
    }
    if (f.is_memory()) f.dram_base = below(5000);
    queue.append(f);
    if (below(3)) continue;
    const Module to = modules[below(3)];
    if ((to == Module::kCompute) == (f.module() == Module::kCompute)) continue;
    queue.push_dependence(f.module(), to);
    queue.pop_dependence(f.module(), to);
  }
  queue.close();
  return queue.instructions();
}

bool same_modules(const CycleResult& a, const CycleResult& b) {
  for (int m = 0; m < kModules; ++m) {
    const ModuleCycles &x = a.modules[m], &y = b.modules[m];
    if (x.busy != y.busy || x.token != y.token || x.queue != y.queue || x.memory != y.memory ||
        x.idle != y.idle) {
      return false;
    }
  }
  return true;
}

bool every_cycle_is_accounted_for(const CycleResult& result) {
  for (const ModuleCycles& m : result.modules) {
    if (m.busy + m.token + m.queue + m.memory + m.idle != result.cycles) return false;
  }
  return true;
}

bool same(const CycleResult& a, const CycleResult& b) {
  if (a.cycles != b.cycles || !same_modules(a, b)) return false;
  for (size_t k = 0; k < a.spans.size(); ++k) {
    if (a.spans[k].begin != b.spans[k].begin || a.spans[k].end != b.spans[k].end) return false;
  }
  return a.spans.size() == b.spans.size();
}

void leaping_changes_nothing(const Config& config, uint32_t seed) {
  const Encoding encoding{config};
  std::mt19937 random(seed);
  for (int k = 0; k < 60; ++k) {
    const auto stream = random_stream(random, encoding);
    const CycleResult stepped = count_cycles(config, stream, Tokens{}, Pace::kStep);
    CHECK(same(stepped, count_cycles(config, stream, Tokens{}, Pace::kJump)));
    CHECK(every_cycle_is_accounted_for(stepped));
  }
}

void lost_tokens_are_a_deadlock() {
  const Config config;
  std::vector<Instruction> stream(257, transfer(Opcode::kStore, Memory::kOut, 1, 0, 0));
  for (Instruction& f : stream) f.push_prev = 1;
  Instruction wait = transfer(Opcode::kLoad, Memory::kAcc, 1, 0, 0);
  wait.pop_next = 1;
  Instruction slow = compute(Opcode::kGemm, 16000, false);
  stream.push_back(slow);
  stream.insert(stream.end(), 257, wait);
  Instruction finish;
  finish.opcode = static_cast<uint32_t>(Opcode::kFinish);
  stream.push_back(finish);
  const std::string why =
      fault_of(TILEFARM_VTA_DEADLOCK, [&] { count_cycles(config, stream, Tokens{}); });
  CHECK(why.find("compute waits for store->compute") != std::string::npos);
  CHECK(why.find("at most 255") != std::string::npos);
}

}  // namespace

int main() {
  isolated_durations();
  streams_of_nops();
  leaping_changes_nothing(Config{}, 1);
  Config de10;
  de10.log_burst_beats = 4;
  leaping_changes_nothing(de10, 2);
  Config narrow;
  narrow.queue_entries = 2;
  narrow.outstanding_bursts = 2;
  narrow.dram_delay_cycles = 40;
  leaping_changes_nothing(narrow, 3);
  Config wide;
  wide.bus_nbytes = 64;
  wide.dram_delay_cycles = 0;
  leaping_changes_nothing(wide, 4);
  lost_tokens_are_a_deadlock();
}
