#include "encoding.h"

#include "error.h"

namespace tilefarm {
namespace {

uint64_t mask(int width) { return (uint64_t{1} << width) - 1; }

void put(Word& word, int bit, int width, uint64_t value, const char* name) {
  if (value & ~mask(width)) {
    fail(TILEFARM_VTA_FIELD_OVERFLOW, "%s = %llu does not fit its %d bits", name,
         static_cast<unsigned long long>(value), width);
  }
  (bit < 64 ? word.lo : word.hi) |= value << (bit % 64);
}

uint32_t take(const Word& word, int bit, int width) {
  return static_cast<uint32_t>(((bit < 64 ? word.lo : word.hi) >> (bit % 64)) & mask(width));
}

// Hands consecutive fields of one word to a visitor.
template <typename Visit>
class Cursor {
 public:
  Cursor(const Visit& visit, int bit) : visit_(visit), bit_(bit) {}
  template <typename Value>
  Cursor& field(int width, Value& value, const char* name) {
    if (width > 0) visit_(bit_, width, value, name);
    bit_ += width;
    return *this;
  }

 private:
  const Visit& visit_;
  int bit_;
};

template <typename Fields, typename Visit>
void visit_memory(Fields& f, const Visit& visit) {
  Cursor<Visit>(visit, 7)
      .field(3, f.memory, "memory type")
      .field(16, f.sram_base, "SRAM base")
      .field(32, f.dram_base, "DRAM base");
  Cursor<Visit>(visit, 64)
      .field(16, f.y_size, "y size")
      .field(16, f.x_size, "x size")
      .field(16, f.x_stride, "x stride")
      .field(4, f.y_pad_0, "y pad before")
      .field(4, f.y_pad_1, "y pad after")
      .field(4, f.x_pad_0, "x pad before")
      .field(4, f.x_pad_1, "x pad after");
}

}  // namespace

Module Instruction::module() const {
  if (op() == Opcode::kStore) return Module::kStore;
  const bool to_load = mem() == Memory::kInp || mem() == Memory::kWgt;
  return op() == Opcode::kLoad && to_load ? Module::kLoad : Module::kCompute;
}

Encoding::Encoding(const Config& c)
    : uop_width_(c.log_uop_depth()),
      acc_width_(c.log_acc_depth()),
      inp_width_(c.log_inp_depth()),
      wgt_width_(c.log_wgt_depth()),
      src_width_(c.log_src_width()) {}

// Calls visit(bit, width, field, name) for every field that this opcode has.
template <typename Fields, typename Visit>
void Encoding::visit_fields(Fields& f, const Visit& visit) const {
  Cursor<Visit>(visit, 3)
      .field(1, f.pop_prev, "pop_prev")
      .field(1, f.pop_next, "pop_next")
      .field(1, f.push_prev, "push_prev")
      .field(1, f.push_next, "push_next");
  if (f.is_memory()) return visit_memory(f, visit);
  if (!f.is_compute()) return;
  Cursor<Visit>(visit, 7)
      .field(1, f.reset, "reset")
      .field(uop_width_, f.uop_begin, "first micro-op")
      .field(uop_width_ + 1, f.uop_end, "micro-op end")
      .field(14, f.iter_out, "outer extent")
      .field(14, f.iter_in, "inner extent");
  const bool gemm = f.op() == Opcode::kGemm;
  const int src_width = gemm ? inp_width_ : acc_width_;
  Cursor<Visit> second(visit, 64);
  second.field(acc_width_, f.dst_out, "outer dst factor")
      .field(acc_width_, f.dst_in, "inner dst factor")
      .field(src_width, f.src_out, "outer src factor")
      .field(src_width, f.src_in, "inner src factor");
  if (gemm) {
    second.field(wgt_width_, f.wgt_out, "outer wgt factor")
        .field(wgt_width_, f.wgt_in, "inner wgt factor");
  } else {
    second.field(3, f.alu_opcode, "ALU opcode").field(1, f.use_imm, "use_imm");
  }
}

Word Encoding::encode(const Instruction& f) const {
  Word word;
  put(word, 0, 3, f.opcode, "opcode");
  visit_fields(f, [&](int bit, int width, uint32_t value, const char* name) {
    put(word, bit, width, value, name);
  });
  if (f.op() == Opcode::kAlu) {
    if (f.imm < INT16_MIN || f.imm > INT16_MAX) {
      fail(TILEFARM_VTA_FIELD_OVERFLOW, "immediate %d does not fit 16 bits", f.imm);
    }
    put(word, 4 * acc_width_ + 64 + 4, 16, static_cast<uint16_t>(f.imm), "immediate");
  }
  return word;
}

Instruction Encoding::decode(const Word& word) const {
  Instruction f;
  f.opcode = take(word, 0, 3);
  if (f.opcode > static_cast<uint32_t>(Opcode::kAlu)) {
    fail(TILEFARM_VTA_BAD_INSTRUCTION, "unknown opcode %u", f.opcode);
  }
  visit_fields(
      f, [&](int bit, int width, uint32_t& value, const char*) { value = take(word, bit, width); });
  if (f.op() == Opcode::kAlu) {
    f.imm = static_cast<int16_t>(take(word, 4 * acc_width_ + 64 + 4, 16));
  }
  return f;
}

uint32_t Encoding::encode_uop(const Uop& uop) const {
  Word word;
  put(word, 0, acc_width_, uop.dst, "micro-op dst index");
  put(word, acc_width_, src_width_, uop.src, "micro-op src index");
  if (wgt_width_ > 0 || uop.wgt) {
    put(word, acc_width_ + src_width_, wgt_width_, uop.wgt, "micro-op wgt index");
  }
  return static_cast<uint32_t>(word.lo);
}

Uop Encoding::decode_uop(uint32_t bits) const {
  const Word word{bits, 0};
  return {take(word, 0, acc_width_), take(word, acc_width_, src_width_),
          take(word, acc_width_ + src_width_, wgt_width_)};
}

}  // namespace tilefarm
