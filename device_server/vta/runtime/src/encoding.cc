#include "encoding.h"

#include "error.h"

namespace tilefarm {
namespace {

uint64_t mask(int width) { return (uint64_t{1} << width) - 1; }

// Puts values into their fields; those that need more bits are refused.
struct Put {
  Word& to;

  void operator()(int word, int bit, int width, uint32_t value, const char* name) const {
    if (value & ~mask(width)) refuse(width, value, name);
    // A field without bits may lie behind the last one, where nothing can be shifted to.
    if (width) (word ? to.hi : to.lo) |= uint64_t{value} << bit;
  }
  void operator()(int word, int bit, int width, int32_t value, const char* name) const {
    const int64_t reach = int64_t{1} << (width - 1);
    if (value < -reach || value >= reach) refuse(width, value, name);
    (*this)(word, bit, width, static_cast<uint32_t>(value & (2 * reach - 1)), name);
  }
  [[noreturn]] static void refuse(int width, int64_t value, const char* name) {
    fail(TILEFARM_VTA_FIELD_OVERFLOW, "%s = %lld does not fit its %d bits", name,
         static_cast<long long>(value), width);
  }
};

// Takes values out of their fields.
struct Take {
  Word from;

  void operator()(int word, int bit, int width, uint32_t& value, const char*) const {
    value = width ? static_cast<uint32_t>((word ? from.hi : from.lo) >> bit & mask(width)) : 0;
  }
  void operator()(int word, int bit, int width, int32_t& value, const char* name) const {
    uint32_t taken = 0;
    (*this)(word, bit, width, taken, name);
    const uint32_t sign = 1u << (width - 1);
    value = static_cast<int32_t>((taken ^ sign) - sign);
  }
};

Opcode known(uint32_t opcode) {
  if (opcode >= kOpcodes) fail(TILEFARM_VTA_BAD_INSTRUCTION, "unknown opcode %u", opcode);
  return static_cast<Opcode>(opcode);
}

}  // namespace

Encoding::Encoding(const Config& config) : bits_(config.index_bits()) {}

Word Encoding::encode(const Instruction& instruction) const {
  Word word;
  const Put put{word};
  // A step over a memory of one element has no bits, and nothing to step to.
  visit_fields(known(instruction.opcode), bits_, instruction,
               [&](int part, int bit, int width, auto value, const char* name) {
                 if (width > 0) put(part, bit, width, value, name);
               });
  return word;
}

Instruction Encoding::decode(const Word& word) const {
  Instruction instruction;
  visit_fields(known(static_cast<uint32_t>(word.lo & mask(kOpcodeBits))), bits_, instruction,
               Take{word});
  return instruction;
}

uint32_t Encoding::encode_uop(const Uop& uop) const {
  Word word;
  visit_uop_fields(bits_, uop, Put{word});
  return static_cast<uint32_t>(word.lo);
}

Uop Encoding::decode_uop(uint32_t bits) const {
  Uop uop;
  visit_uop_fields(bits_, uop, Take{Word{bits, 0}});
  return uop;
}

}  // namespace tilefarm
