// What instructions take alone in the HLS design, and how its modules share time.

#include "check.h"
#include "command_queue.h"
#include "cycle/hls_model.h"

using namespace tilefarm;

namespace {

const Config kConfig;
const Encoding kEncoding{kConfig};
constexpr uint64_t kLatency = 45;

Instruction transfer(Opcode opcode, Memory memory, uint32_t y, uint32_t x) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.memory = static_cast<uint32_t>(memory);
  f.y_size = y;
  f.x_size = f.x_stride = x;
  return f;
}

Instruction compute(Opcode opcode, uint32_t count) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.uop_end = f.iter_in = 1;
  f.iter_out = count;
  return f;
}

CycleResult run(CommandQueue& queue, const Config& config = kConfig) {
  queue.close();
  return estimate_hls_cycles(config, queue.instructions(), Tokens{});
}

uint64_t alone(const Instruction& f) {
  CommandQueue queue(kEncoding);
  queue.append(f);
  const Span span = run(queue).spans[0];
  return span.end - span.begin;
}

// Periods measured on the Verilog, with this model's latency in place of L.
void isolated_periods() {
  const uint64_t l = kLatency;
  CHECK(alone(transfer(Opcode::kLoad, Memory::kInp, 0, 0)) == 9);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kUop, 0, 0)) == 13);
  CHECK(alone(transfer(Opcode::kStore, Memory::kOut, 0, 0)) == 3);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kInp, 14, 14)) == 9 + 14 * (28 + 18 + l));
  CHECK(alone(transfer(Opcode::kLoad, Memory::kWgt, 2, 9)) == 5 + 2 * (9 * 64 + 14 + l));
  CHECK(alone(transfer(Opcode::kLoad, Memory::kUop, 1, 100)) == 100 + 17 + l);
  CHECK(alone(transfer(Opcode::kLoad, Memory::kAcc, 3, 5)) == 11 + 3 * (40 + 18 + l));
  CHECK(alone(transfer(Opcode::kStore, Memory::kOut, 4, 7)) == 3 + 4 * (14 + 13 + l));
  CHECK(alone(compute(Opcode::kGemm, 1000)) == 1019);
  CHECK(alone(compute(Opcode::kAlu, 1000)) == 2019);
  Instruction padded = transfer(Opcode::kLoad, Memory::kInp, 2, 3);
  padded.x_pad_0 = padded.y_pad_1 = 1;
  CHECK(alone(padded) == 9 + 6 + 2 * (6 + 18 + l));
}

bool accounted(const CycleResult& r) {
  for (const ModuleCycles& m : r.modules) {
    if (m.busy + m.token + m.queue + m.memory + m.idle != r.cycles) return false;
  }
  return true;
}

void readers_share_the_port() {
  CommandQueue queue(kEncoding);
  queue.append(transfer(Opcode::kLoad, Memory::kInp, 1, 2000));
  queue.append(transfer(Opcode::kLoad, Memory::kAcc, 1, 500));
  const CycleResult both = run(queue);
  const uint64_t first = both.spans[0].end - both.spans[0].begin;
  const uint64_t second = both.spans[1].end - both.spans[1].begin;
  CHECK(first == alone(transfer(Opcode::kLoad, Memory::kInp, 1, 2000)));
  CHECK(second > alone(transfer(Opcode::kLoad, Memory::kAcc, 1, 500)) + 3900);
  CHECK(accounted(both));
  CHECK(both.modules[1].memory > 3900 && both.modules[0].memory == kLatency);
}

void tokens_order_modules() {
  CommandQueue queue(kEncoding);
  queue.append(transfer(Opcode::kLoad, Memory::kInp, 1, 100));
  queue.push_dependence(Module::kLoad, Module::kCompute);
  queue.pop_dependence(Module::kLoad, Module::kCompute);
  queue.append(compute(Opcode::kGemm, 10));
  const CycleResult result = run(queue);
  CHECK(result.spans[1].begin == result.spans[0].end);
  CHECK(result.modules[1].token > 200);
  CHECK(accounted(result));
  CHECK(result.cycles == result.spans.back().end);
}

// A store that is waited for lies behind more loads than the queue holds.
void a_full_queue_can_be_a_deadlock() {
  Config small;
  small.queue_entries = 2;
  std::vector<Instruction> stream(6, transfer(Opcode::kLoad, Memory::kInp, 1, 1));
  stream[0].pop_next = 1;
  stream.push_back(compute(Opcode::kGemm, 1));
  stream.back().push_prev = 1;
  Instruction finish;
  finish.opcode = static_cast<uint32_t>(Opcode::kFinish);
  stream.push_back(finish);
  estimate_hls_cycles(kConfig, stream, Tokens{});
  const std::string why =
      fault_of(TILEFARM_VTA_DEADLOCK, [&] { estimate_hls_cycles(small, stream, Tokens{}); });
  CHECK(why.find("load waits for compute->load at instruction 0") != std::string::npos);
  CHECK(why.find("queues hold 2 instructions") != std::string::npos);
}

}  // namespace

int main() {
  isolated_periods();
  readers_share_the_port();
  tokens_order_modules();
  a_full_queue_can_be_a_deadlock();
}
