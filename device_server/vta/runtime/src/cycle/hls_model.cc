#include "hls_model.h"

#include <algorithm>
#include <deque>

#include "../error.h"
#include "../functional.h"
#include "../token_order.h"

namespace tilefarm {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

// From a request to its first beat, beyond the delay that the configuration gives the memory; and
// from the last beat of a write to its acknowledgement. Fitted, see HLS.md.
constexpr uint64_t kReadPathCycles = 29;
constexpr uint64_t kWritePathCycles = 29;

constexpr uint64_t kComputeNopCycles = 13;
constexpr uint64_t kLoadNopCycles = 9;
constexpr uint64_t kStoreNopCycles = 3;
constexpr uint64_t kLoopCycles = 19;          // of GEMM and ALU beside their micro-ops
constexpr uint64_t kFetchStartCycles = 15;    // and the latency, to the first instruction
constexpr uint64_t kWeightBytesPerCycle = 4;  // whatever the width of the bus
constexpr uint64_t kUopBytesPerCycle = 4;

// What a module does with an instruction: once, and for each row of a transfer.
struct Plan {
  uint64_t once_cycles = 0;
  uint64_t rows = 0;
  uint64_t row_cycles = 0;       // beside latency and data
  uint64_t row_data_cycles = 0;  // while data move
  uint64_t row_port_cycles = 0;  // of these, taken from the shared port
};

uint64_t padded_elements(const Instruction& f) {
  const uint64_t width = uint64_t{f.x_pad_0} + f.x_size + f.x_pad_1;
  const uint64_t height = uint64_t{f.y_pad_0} + f.y_size + f.y_pad_1;
  return width * height - uint64_t{f.x_size} * f.y_size;
}

uint64_t quotient_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

Plan plan_load(const Config& config, const Instruction& f) {
  const uint64_t nbytes = uint64_t{f.x_size} * element_nbytes(config, f.mem());
  const uint64_t beats = quotient_up(nbytes, config.bus_nbytes);
  switch (f.mem()) {
    case Memory::kInp: return {9 + padded_elements(f), f.y_size, 18, beats, beats};
    case Memory::kWgt:
      return {5, f.y_size, 14, std::max(beats, nbytes / kWeightBytesPerCycle), beats};
    case Memory::kUop: return {0, 1, 17, std::max(beats, nbytes / kUopBytesPerCycle), beats};
    default: return {11 + padded_elements(f), f.y_size, 18, beats, beats};
  }
}

Plan plan_of(const Config& config, const Instruction& f) {
  if (f.is_nop()) {
    constexpr uint64_t kNopCycles[] = {kLoadNopCycles, kComputeNopCycles, kStoreNopCycles};
    return {kNopCycles[static_cast<size_t>(f.module())], 0, 0, 0, 0};
  }
  switch (f.op()) {
    case Opcode::kLoad: return plan_load(config, f);
    case Opcode::kStore: {
      const uint64_t nbytes = uint64_t{f.x_size} * config.out_nbytes();
      return {3, f.y_size, 13, quotient_up(nbytes, config.bus_nbytes), 0};
    }
    case Opcode::kGemm: return {f.executed_uops() + kLoopCycles, 0, 0, 0, 0};
    case Opcode::kAlu: return {2 * f.executed_uops() + kLoopCycles, 0, 0, 0, 0};
    default: return {kComputeNopCycles, 0, 0, 0, 0};
  }
}

struct HlsModule {
  std::vector<size_t> order;      // positions of its instructions in the stream
  std::vector<uint64_t> accepts;  // when they were accepted
  uint64_t free_at = 0;           // when the one before has ended
  uint64_t row_at = 0;            // when the next row of the present one begins
  uint64_t rows_left = 0;
  Plan plan;

  bool done() const { return accepts.size() == order.size(); }
  size_t head() const { return order[accepts.size()]; }
};

class HlsModel {
 public:
  HlsModel(const Config& config, const std::vector<Instruction>& instructions,
           const Tokens& tokens);
  CycleResult run();

 private:
  void require_done() const;
  void advance_fetch();
  uint64_t next_event(const HlsModule& module) const;
  void accept(size_t which, uint64_t at);
  void move_row(size_t which);
  void complete(size_t which, uint64_t at);

  const Config& config_;
  const std::vector<Instruction>& instructions_;
  std::vector<TokenUse> uses_;
  std::vector<size_t> places_;       // of an instruction among those of its module
  std::vector<uint64_t> delivered_;  // by fetch; as many as it has got to
  std::array<HlsModule, kModules> modules_;
  std::array<std::deque<uint64_t>, kTokenQueues> tokens_;  // when each was given
  uint64_t read_latency_, write_latency_;
  uint64_t port_free_at_ = 0;
  CycleResult result_;
};

HlsModel::HlsModel(const Config& config, const std::vector<Instruction>& instructions,
                   const Tokens& tokens)
    : config_(config),
      instructions_(instructions),
      read_latency_(config.dram_delay_cycles + kReadPathCycles),
      write_latency_(config.dram_delay_cycles + kWritePathCycles) {
  for (size_t k = 0; k < instructions.size(); ++k) {
    HlsModule& module = modules_[static_cast<size_t>(instructions[k].module())];
    places_.push_back(module.order.size());
    module.order.push_back(k);
    uses_.push_back(token_use(instructions[k]));
  }
  for (int q = 0; q < kTokenQueues; ++q) tokens_[q].assign(tokens[q], 0);
  result_.spans.resize(instructions.size());
}

CycleResult HlsModel::run() {
  while (true) {
    advance_fetch();
    size_t first = 0;
    std::array<uint64_t, kModules> events;
    for (size_t m = 0; m < kModules; ++m) {
      events[m] = next_event(modules_[m]);
      if (events[m] < events[first]) first = m;
    }
    if (events[first] == kNever) break;
    modules_[first].rows_left > 0 ? move_row(first) : accept(first, events[first]);
  }
  require_done();
  for (const HlsModule& m : modules_) result_.cycles = std::max(result_.cycles, m.free_at);
  for (size_t m = 0; m < kModules; ++m) {
    result_.modules[m].idle += result_.cycles - modules_[m].free_at;
  }
  return std::move(result_);
}

// A module may wait for a token behind an instruction that a full queue keeps from being fetched.
void HlsModel::require_done() const {
  if (std::all_of(modules_.begin(), modules_.end(), [](const HlsModule& m) { return m.done(); })) {
    return;
  }
  std::vector<size_t> heads;
  for (const HlsModule& m : modules_) heads.push_back(m.done() ? instructions_.size() : m.head());
  Tokens tokens{};
  for (int q = 0; q < kTokenQueues; ++q) tokens[q] = tokens_[q].size();
  fail(TILEFARM_VTA_DEADLOCK, "%s (queues hold %u instructions)",
       deadlock_story(instructions_, heads, tokens).c_str(), config_.queue_entries);
}

// One instruction after the other; a full queue stops them all.
void HlsModel::advance_fetch() {
  const uint64_t interval = quotient_up(kInstructionNbytes, config_.bus_nbytes);
  while (delivered_.size() < instructions_.size()) {
    const size_t k = delivered_.size();
    const HlsModule& module = modules_[static_cast<size_t>(instructions_[k].module())];
    uint64_t at = k == 0 ? read_latency_ + kFetchStartCycles : delivered_.back() + interval;
    if (places_[k] >= config_.queue_entries) {
      const size_t before = places_[k] - config_.queue_entries;
      if (before >= module.accepts.size()) return;
      at = std::max(at, module.accepts[before]);
    }
    delivered_.push_back(at);
  }
}

// When the module's next row begins, or its next instruction; never while a token is not given.
uint64_t HlsModel::next_event(const HlsModule& module) const {
  if (module.rows_left > 0) return module.row_at;
  if (module.done() || module.head() >= delivered_.size()) return kNever;
  uint64_t at = std::max(module.free_at, delivered_[module.head()]);
  for (int q = 0; q < kTokenQueues; ++q) {
    if (!(uses_[module.head()].pops >> q & 1)) continue;
    if (tokens_[q].empty()) return kNever;
    at = std::max(at, tokens_[q].front());
  }
  return at;
}

void HlsModel::accept(size_t which, uint64_t at) {
  HlsModule& module = modules_[which];
  const size_t index = module.head();
  for (int q = 0; q < kTokenQueues; ++q) {
    if (uses_[index].pops >> q & 1) tokens_[q].pop_front();
  }
  ModuleCycles& cycles = result_.modules[which];
  const uint64_t fetched = std::max(module.free_at, delivered_[index]);
  cycles.queue += fetched - module.free_at;
  cycles.token += at - fetched;
  result_.spans[index].begin = at;
  module.accepts.push_back(at);
  module.plan = plan_of(config_, instructions_[index]);
  module.rows_left = module.plan.rows;
  module.row_at = at + module.plan.once_cycles;
  cycles.busy += module.plan.once_cycles;
  if (module.rows_left == 0) complete(which, module.row_at);
}

// Rows of a module do not overlap, so each sees the latency. Readers share the port in the order in
// which they ask; writes have their own.
void HlsModel::move_row(size_t which) {
  HlsModule& module = modules_[which];
  const Plan& plan = module.plan;
  const bool writes = which == static_cast<size_t>(Module::kStore);
  const uint64_t latency = writes ? write_latency_ : read_latency_;
  const uint64_t ready = module.row_at + plan.row_cycles + latency;
  const uint64_t data = writes ? ready : std::max(ready, port_free_at_);
  if (!writes) port_free_at_ = data + plan.row_port_cycles;
  result_.modules[which].busy += plan.row_cycles + plan.row_data_cycles;
  result_.modules[which].memory += data - ready + latency;
  module.row_at = data + plan.row_data_cycles;
  if (--module.rows_left == 0) complete(which, module.row_at);
}

void HlsModel::complete(size_t which, uint64_t at) {
  HlsModule& module = modules_[which];
  const size_t index = module.order[module.accepts.size() - 1];
  module.free_at = at;
  result_.spans[index].end = at;
  for (int q = 0; q < kTokenQueues; ++q) {
    if (uses_[index].pushes >> q & 1) tokens_[q].push_back(at);
  }
}

}  // namespace

CycleResult estimate_hls_cycles(const Config& config, const std::vector<Instruction>& instructions,
                                const Tokens& tokens) {
  return HlsModel(config, instructions, tokens).run();
}

}  // namespace tilefarm
