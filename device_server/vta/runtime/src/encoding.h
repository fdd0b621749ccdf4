// The 128-bit instructions and 32-bit micro-ops, to bits and back.
//
// Where every field lies is in isa.h, which is generated.
#ifndef TILEFARM_ENCODING_H_
#define TILEFARM_ENCODING_H_

#include <cstdint>

#include "config.h"
#include "isa.h"

namespace tilefarm {

struct Word {
  uint64_t lo = 0;
  uint64_t hi = 0;
};

struct Instruction : InstructionFields {
  Opcode op() const { return static_cast<Opcode>(opcode); }
  Memory mem() const { return static_cast<Memory>(memory); }
  bool is_memory() const { return op() == Opcode::kLoad || op() == Opcode::kStore; }
  bool is_compute() const { return op() == Opcode::kGemm || op() == Opcode::kAlu; }
  // Nothing is moved. The Chisel design hangs where only y_size is 0.
  bool is_nop() const { return is_memory() && (x_size == 0 || y_size == 0); }
  Module module() const { return module_of(op(), mem()); }
  uint64_t uops() const { return uint64_t{uop_end} - uop_begin; }
  uint64_t executed_uops() const { return uops() * iter_out * iter_in; }
};

class Encoding {
 public:
  explicit Encoding(const Config& config);
  Word encode(const Instruction& instruction) const;  // FIELD_OVERFLOW when a value does not fit
  Instruction decode(const Word& word) const;         // BAD_INSTRUCTION for an unknown opcode
  uint32_t encode_uop(const Uop& uop) const;
  Uop decode_uop(uint32_t word) const;

 private:
  IndexBits bits_;
};

}  // namespace tilefarm

#endif  // TILEFARM_ENCODING_H_
