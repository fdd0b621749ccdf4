// A reset leaves zeros in every element of every on-chip buffer, whatever wrote it last.

#include "functional.h"

#include <algorithm>
#include <cstring>

#include "check.h"

using namespace tilefarm;

namespace {

constexpr uint8_t kByte = 0x11;

class Machine {
 public:
  Machine() : functional_(config_, encoding_), data_(dram_.allocate(size_t{1} << 20)) {
    std::memset(data_->host, kByte, data_->nbytes);
  }

  void load(Memory memory, uint32_t first, uint32_t count) {
    Instruction f;
    f.opcode = static_cast<uint32_t>(Opcode::kLoad);
    f.memory = static_cast<uint32_t>(memory);
    f.sram_base = first;
    f.dram_base = static_cast<uint32_t>(data_->address / element_nbytes(config_, memory));
    f.y_size = 1;
    f.x_size = f.x_stride = count;
    functional_.execute(f, dram_, counters_);
  }

  // Over all accumulators, with the first micro-op, which must be zero.
  Instruction everywhere(Opcode opcode) const {
    Instruction f;
    f.opcode = static_cast<uint32_t>(opcode);
    f.uop_end = f.iter_in = f.dst_out = 1;
    f.iter_out = config_.acc_depth();
    return f;
  }

  void run(const Instruction& f) { functional_.execute(f, dram_, counters_); }
  void reset() { functional_.reset(); }

  bool accumulators_are_zero() const {
    const int32_t* acc = functional_.acc();
    const size_t count = size_t{config_.acc_depth()} * config_.batch() * config_.block();
    return std::all_of(acc, acc + count, [](int32_t value) { return value == 0; });
  }

  bool uops_are_zero() const {
    return std::all_of(functional_.uops().begin(), functional_.uops().end(),
                       [](const Uop& u) { return u.dst == 0 && u.src == 0 && u.wgt == 0; });
  }

  const Config& config() const { return config_; }

 private:
  Config config_;
  Encoding encoding_{config_};
  Functional functional_;
  Dram dram_{1};
  DataBuffer* data_;
  tilefarm_vta_counters counters_{};
};

void after_loads() {
  Machine machine;
  CHECK(machine.accumulators_are_zero() && machine.uops_are_zero());
  machine.load(Memory::kAcc, machine.config().acc_depth() - 1, 1);
  machine.load(Memory::kUop, machine.config().uop_depth() - 1, 1);
  CHECK(!machine.accumulators_are_zero() && !machine.uops_are_zero());
  machine.reset();
  CHECK(machine.accumulators_are_zero() && machine.uops_are_zero());
  machine.load(Memory::kAcc8, machine.config().acc_depth() - 1, 1);
  CHECK(!machine.accumulators_are_zero());
  machine.reset();
  CHECK(machine.accumulators_are_zero());
}

void after_a_product() {
  Machine machine;
  machine.load(Memory::kInp, 0, 1);
  machine.load(Memory::kWgt, 0, 1);
  machine.run(machine.everywhere(Opcode::kGemm));
  CHECK(!machine.accumulators_are_zero());
  machine.reset();
  CHECK(machine.accumulators_are_zero());
}

void after_an_addition() {
  Machine machine;
  Instruction f = machine.everywhere(Opcode::kAlu);
  f.alu_opcode = static_cast<uint32_t>(AluOp::kAdd);
  f.use_imm = 1;
  f.imm = 5;
  machine.run(f);
  CHECK(!machine.accumulators_are_zero());
  machine.reset();
  CHECK(machine.accumulators_are_zero());
}

// A product of one operand that was loaded, and one that was before the reset.
void after_operands(Memory before, Memory now) {
  Machine machine;
  const auto last = [&](Memory memory) {
    const Config& config = machine.config();
    return (memory == Memory::kInp ? config.inp_depth() : config.wgt_depth()) - 1;
  };
  machine.load(before, last(before), 1);
  machine.reset();
  machine.load(now, last(now), 1);
  Instruction f = machine.everywhere(Opcode::kGemm);
  f.iter_out = 2;
  f.src_out = last(Memory::kInp);
  f.wgt_out = last(Memory::kWgt);
  machine.run(f);
  CHECK(machine.accumulators_are_zero());
}

}  // namespace

int main() {
  after_loads();
  after_a_product();
  after_an_addition();
  after_operands(Memory::kInp, Memory::kWgt);
  after_operands(Memory::kWgt, Memory::kInp);
}
