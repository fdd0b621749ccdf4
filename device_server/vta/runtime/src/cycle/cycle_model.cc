#include "cycle_model.h"

#include <algorithm>

#include "../error.h"
#include "../functional.h"
#include "../token_order.h"
#include "execution_cycles.h"
#include "fetch.h"
#include "loader.h"
#include "memory_port.h"

namespace tilefarm {
namespace {

constexpr uint64_t kTokenLimit = 255;  // 8-bit counters (core/Semaphore.scala)
constexpr int kNoLoader = -1;

// What the modules need to know of an instruction.
struct Timed {
  Module module;
  bool nop;
  int loader;            // client of the loader that it starts, or kNoLoader
  uint64_t cycles;       // of execution, without a loader
  uint64_t round_trips;  // of these, waiting for DRAM
  TokenUse use;
};

int loader_of(const Instruction& f) {
  if (f.op() != Opcode::kLoad) return kNoLoader;
  switch (f.mem()) {
    case Memory::kUop: return kUopClient;
    case Memory::kInp: return kInpClient;
    case Memory::kWgt: return kWgtClient;
    default: return kAccClient;
  }
}

struct ModuleState {
  enum class State { kIdle, kSync, kExecute };
  State state = State::kIdle;
  std::vector<size_t> order;  // positions of its instructions in the stream
  size_t queued = 0;          // handed out by fetch and visible
  size_t taken = 0;           // completed
  bool handed_out = false;    // one more becomes visible in the next cycle
  uint64_t countdown = 0;

  size_t waiting() const { return queued - taken; }
  size_t head() const { return order[taken]; }
};

class CycleModel {
 public:
  CycleModel(const Config& config, const std::vector<Instruction>& instructions,
             const Tokens& tokens);
  CycleResult run(Pace pace);

 private:
  bool queue_has_room() const;
  void step_fetch();
  void step_module(ModuleState& module);
  void begin(ModuleState& module, size_t index);
  void complete(ModuleState& module);
  void post_tokens();
  uint64_t steady_cycles() const;
  uint64_t module_steady_cycles(const ModuleState& module, uint64_t limit) const;
  void jump(uint64_t cycles);
  void account(uint64_t cycles);
  uint64_t& account_of(size_t which);
  [[noreturn]] void fail_with_story() const;

  const Config& config_;
  const std::vector<Instruction>& instructions_;
  std::vector<Timed> timed_;
  MemoryPort port_;
  Fetch fetch_;
  std::array<Loader, 4> loaders_;  // client k is loaders_[k - 1]
  ModuleState modules_[kModules];
  Tokens tokens_;
  TokenMask posted_[kModules] = {0, 0, 0};
  uint64_t now_ = 0;
  bool finished_ = false;
  CycleResult result_;
};

CycleModel::CycleModel(const Config& config, const std::vector<Instruction>& instructions,
                       const Tokens& tokens)
    : config_(config),
      instructions_(instructions),
      port_(config),
      fetch_(config, instructions.size()),
      loaders_{Loader(kUopClient, config), Loader(kInpClient, config), Loader(kWgtClient, config),
               Loader(kAccClient, config)},
      tokens_(tokens) {
  timed_.reserve(instructions.size());
  for (size_t k = 0; k < instructions.size(); ++k) {
    const Instruction& f = instructions[k];
    const int loader = f.is_nop() ? kNoLoader : loader_of(f);
    const bool counted = loader == kNoLoader && !f.is_nop();
    timed_.push_back({f.module(), f.is_nop(), loader, counted ? execution_cycles(config, f) : 0,
                      counted ? round_trip_cycles(config, f) : 0, token_use(f)});
    modules_[static_cast<size_t>(f.module())].order.push_back(k);
  }
  result_.spans.resize(instructions.size());
}

CycleResult CycleModel::run(Pace pace) {
  for (; !finished_; ++now_) {
    if (pace == Pace::kJump) jump(steady_cycles());
    if (now_ > 0) account(1);
    step_fetch();
    for (ModuleState& module : modules_) step_module(module);
    if (finished_) break;
    for (Loader& loader : loaders_) loader.step(port_);
    port_.step();
    post_tokens();
    for (ModuleState& module : modules_) {
      module.queued += module.handed_out;
      module.handed_out = false;
    }
  }
  result_.cycles = now_;
  for (Span& span : result_.spans) {
    if (span.begin > span.end) span.end = std::max(span.begin, now_ + 1);
  }
  return std::move(result_);
}

bool CycleModel::queue_has_room() const {
  if (!fetch_.draining()) return false;
  const Timed& next = timed_[fetch_.position()];
  return modules_[static_cast<size_t>(next.module)].waiting() < config_.queue_entries;
}

void CycleModel::step_fetch() {
  const size_t position = fetch_.position();
  if (!fetch_.step(port_, queue_has_room())) return;
  modules_[static_cast<size_t>(timed_[position].module)].handed_out = true;
}

void CycleModel::step_module(ModuleState& module) {
  using State = ModuleState::State;
  if (module.state == State::kIdle) {
    if (module.waiting() > 0 && available(tokens_, timed_[module.head()].use.pops)) {
      begin(module, module.head());
    }
    return;
  }
  const Timed& head = timed_[module.head()];
  if (module.state == State::kSync) return complete(module);
  if (head.loader != kNoLoader) {
    Loader& loader = loaders_[static_cast<size_t>(head.loader - 1)];
    if (!loader.done()) return;
    loader.release();
    return complete(module);
  }
  if (--module.countdown == 0) complete(module);
}

void CycleModel::begin(ModuleState& module, size_t index) {
  const Timed& head = timed_[index];
  for (int q = 0; q < kTokenQueues; ++q) tokens_[q] -= head.use.pops >> q & 1;
  result_.spans[index].begin = now_ + 1;
  module.state = head.nop ? ModuleState::State::kSync : ModuleState::State::kExecute;
  if (head.nop) return;
  if (head.loader == kNoLoader) {
    module.countdown = head.cycles;
    return;
  }
  const Instruction& f = instructions_[index];
  loaders_[static_cast<size_t>(head.loader - 1)].start(f, element_nbytes(config_, f.mem()));
}

void CycleModel::complete(ModuleState& module) {
  const size_t index = module.head();
  Span& span = result_.spans[index];
  span.end = now_ + 1;
  const auto which = static_cast<size_t>(timed_[index].module);
  result_.modules[which].busy -= timed_[index].round_trips;
  result_.modules[which].memory += timed_[index].round_trips;
  posted_[which] = timed_[index].use.pushes;
  module.state = ModuleState::State::kIdle;
  ++module.taken;
  if (instructions_[index].op() == Opcode::kFinish) finished_ = true;
}

void CycleModel::post_tokens() {
  for (TokenMask& mask : posted_) {
    for (int q = 0; mask >> q != 0; ++q) {
      if (mask >> q & 1) tokens_[q] = std::min(tokens_[q] + 1, std::max(kTokenLimit, tokens_[q]));
    }
    mask = 0;
  }
}

uint64_t CycleModel::module_steady_cycles(const ModuleState& module, uint64_t limit) const {
  using State = ModuleState::State;
  if (module.state == State::kSync) return 0;
  if (module.state == State::kIdle) {
    const bool ready = module.waiting() > 0 && available(tokens_, timed_[module.head()].use.pops);
    return ready ? 0 : limit;
  }
  if (timed_[module.head()].loader != kNoLoader) return limit;
  return std::min(limit, module.countdown - 1);
}

uint64_t CycleModel::steady_cycles() const {
  uint64_t limit = kForever;
  for (const ModuleState& module : modules_) {
    if ((limit = module_steady_cycles(module, limit)) == 0) return 0;
  }
  if ((limit = std::min(limit, port_.steady_cycles())) == 0) return 0;
  if ((limit = fetch_.steady_cycles(port_, limit, queue_has_room())) == 0) return 0;
  for (const Loader& loader : loaders_) {
    if ((limit = loader.steady_cycles(port_, limit)) == 0) return 0;
  }
  if (limit == kForever) fail_with_story();
  return limit;
}

void CycleModel::jump(uint64_t cycles) {
  if (cycles == 0) return;
  account(cycles);
  for (ModuleState& module : modules_) {
    const bool counting =
        module.state == ModuleState::State::kExecute && timed_[module.head()].loader == kNoLoader;
    if (counting) module.countdown -= cycles;
  }
  fetch_.jump(cycles, port_);
  for (Loader& loader : loaders_) loader.jump(cycles, port_);
  port_.jump(cycles);
  now_ += cycles;
}

// Where this cycle of a module belongs; all that it depends on stays as it is while time leaps.
uint64_t& CycleModel::account_of(size_t which) {
  using State = ModuleState::State;
  const ModuleState& module = modules_[which];
  ModuleCycles& cycles = result_.modules[which];
  if (module.state == State::kIdle) {
    if (module.taken == module.order.size()) return cycles.idle;
    if (module.waiting() == 0) return cycles.queue;
    return available(tokens_, timed_[module.head()].use.pops) ? cycles.idle : cycles.token;
  }
  const int loader = module.state == State::kSync ? kNoLoader : timed_[module.head()].loader;
  if (loader == kNoLoader) return cycles.busy;
  return loaders_[static_cast<size_t>(loader - 1)].waits(port_) ? cycles.memory : cycles.busy;
}

void CycleModel::account(uint64_t cycles) {
  for (size_t which = 0; which < kModules; ++which) account_of(which) += cycles;
}

void CycleModel::fail_with_story() const {
  std::vector<size_t> heads;
  for (const ModuleState& module : modules_) {
    heads.push_back(module.taken < module.order.size() ? module.head() : instructions_.size());
  }
  fail(TILEFARM_VTA_DEADLOCK, "%s (token counters hold at most %llu)",
       deadlock_story(instructions_, heads, tokens_).c_str(),
       static_cast<unsigned long long>(kTokenLimit));
}

}  // namespace

CycleResult count_cycles(const Config& config, const std::vector<Instruction>& instructions,
                         const Tokens& tokens, Pace pace) {
  return CycleModel(config, instructions, tokens).run(pace);
}

}  // namespace tilefarm
