// The 128-bit instructions and 32-bit micro-ops, to bits and back.
//
// Source: hw/include/vta/hw_spec.h of apache/tvm-vta; bit-fields do not straddle 64-bit words.
#ifndef TILEFARM_ENCODING_H_
#define TILEFARM_ENCODING_H_

#include <cstdint>

#include "config.h"

namespace tilefarm {

enum class Opcode : uint32_t { kLoad = 0, kStore = 1, kGemm = 2, kFinish = 3, kAlu = 4 };
enum class Memory : uint32_t { kUop = 0, kWgt = 1, kInp = 2, kAcc = 3, kOut = 4, kAcc8 = 5 };
enum class AluOp : uint32_t { kMin = 0, kMax = 1, kAdd = 2, kShr = 3, kMul = 4 };
enum class Module : uint32_t { kLoad = 0, kCompute = 1, kStore = 2 };
constexpr int kModules = 3;

struct Word {
  uint64_t lo = 0;
  uint64_t hi = 0;
};

// Every field of every kind of instruction; those of other kinds stay 0.
struct Instruction {
  uint32_t opcode = 0;
  uint32_t pop_prev = 0, pop_next = 0, push_prev = 0, push_next = 0;
  // LOAD and STORE. Sizes, strides and bases count elements of the memory type.
  uint32_t memory = 0, sram_base = 0, dram_base = 0;
  uint32_t y_size = 0, x_size = 0, x_stride = 0;
  uint32_t y_pad_0 = 0, y_pad_1 = 0, x_pad_0 = 0, x_pad_1 = 0;
  // GEMM and ALU.
  uint32_t reset = 0, uop_begin = 0, uop_end = 0, iter_out = 0, iter_in = 0;
  uint32_t dst_out = 0, dst_in = 0, src_out = 0, src_in = 0, wgt_out = 0, wgt_in = 0;
  // ALU.
  uint32_t alu_opcode = 0, use_imm = 0;
  int32_t imm = 0;

  Opcode op() const { return static_cast<Opcode>(opcode); }
  Memory mem() const { return static_cast<Memory>(memory); }
  bool is_memory() const { return op() == Opcode::kLoad || op() == Opcode::kStore; }
  bool is_compute() const { return op() == Opcode::kGemm || op() == Opcode::kAlu; }
  // Nothing is moved. The Chisel design hangs where only y_size is 0.
  bool is_nop() const { return is_memory() && (x_size == 0 || y_size == 0); }
  Module module() const;
  uint64_t uops() const { return uint64_t{uop_end} - uop_begin; }
  uint64_t executed_uops() const { return uops() * iter_out * iter_in; }
};

struct Uop {
  uint32_t dst = 0, src = 0, wgt = 0;
};

class Encoding {
 public:
  explicit Encoding(const Config& config);
  Word encode(const Instruction& instruction) const;  // FIELD_OVERFLOW when a value does not fit
  Instruction decode(const Word& word) const;         // BAD_INSTRUCTION for an unknown opcode
  uint32_t encode_uop(const Uop& uop) const;
  Uop decode_uop(uint32_t word) const;

 private:
  template <typename Fields, typename Visit>
  void visit_fields(Fields& fields, const Visit& visit) const;

  int uop_width_, acc_width_, inp_width_, wgt_width_, src_width_;
};

}  // namespace tilefarm

#endif  // TILEFARM_ENCODING_H_
