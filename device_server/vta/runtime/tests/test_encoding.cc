// Bit layouts against hand-packed words, and round trips over every field.

#include <random>

#include "check.h"
#include "encoding.h"

using namespace tilefarm;

namespace {

void layout_of_memory_instructions() {
  const Encoding encoding{Config{}};
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kLoad);
  f.push_next = 1;
  f.memory = static_cast<uint32_t>(Memory::kInp);
  f.sram_base = 3;
  f.dram_base = 5;
  f.y_size = 7;
  f.x_size = 11;
  f.x_stride = 13;
  f.y_pad_0 = 1;
  f.y_pad_1 = 2;
  f.x_pad_0 = 4;
  f.x_pad_1 = 8;
  const Word word = encoding.encode(f);
  CHECK(word.lo == (1ull << 6 | 2ull << 7 | 3ull << 10 | 5ull << 26));
  CHECK(word.hi ==
        (7ull | 11ull << 16 | 13ull << 32 | 1ull << 48 | 2ull << 52 | 4ull << 56 | 8ull << 60));
}

void layout_of_compute_instructions() {
  const Encoding encoding{Config{}};
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kGemm);
  f.reset = 1;
  f.uop_begin = 2;
  f.uop_end = 8192;
  f.iter_out = 3;
  f.iter_in = 4;
  f.dst_out = 5;
  f.dst_in = 6;
  f.src_out = 7;
  f.src_in = 8;
  f.wgt_out = 9;
  f.wgt_in = 10;
  const Word gemm = encoding.encode(f);
  CHECK(gemm.lo == (2ull | 1ull << 7 | 2ull << 8 | 8192ull << 21 | 3ull << 35 | 4ull << 49));
  CHECK(gemm.hi == (5ull | 6ull << 11 | 7ull << 22 | 8ull << 33 | 9ull << 44 | 10ull << 54));

  f.opcode = static_cast<uint32_t>(Opcode::kAlu);
  f.wgt_out = f.wgt_in = 0;
  f.alu_opcode = static_cast<uint32_t>(AluOp::kShr);
  f.use_imm = 1;
  f.imm = -2;
  const Word alu = encoding.encode(f);
  CHECK(alu.hi ==
        (5ull | 6ull << 11 | 7ull << 22 | 8ull << 33 | 3ull << 44 | 1ull << 47 | 0xfffeull << 48));
  CHECK(encoding.decode(alu).imm == -2);
}

void layout_of_uops() {
  const Encoding encoding{Config{}};
  CHECK(encoding.encode_uop({1, 2, 3}) == (1u | 2u << 11 | 3u << 22));
  const Uop uop = encoding.decode_uop(2047u | 2046u << 11 | 1023u << 22);
  CHECK(uop.dst == 2047 && uop.src == 2046 && uop.wgt == 1023);
}

// Any word decodes to fields that encode to the same word, apart from bits that no field has.
void round_trips(const Config& config) {
  const Encoding encoding{config};
  std::mt19937_64 random(1);
  for (int k = 0; k < 2000; ++k) {
    Word word{random(), random()};
    word.lo = (word.lo & ~7ull) | random() % 5;
    const Word once = encoding.encode(encoding.decode(word));
    const Word twice = encoding.encode(encoding.decode(once));
    CHECK(once.lo == twice.lo && once.hi == twice.hi);
    CHECK((once.lo & ~word.lo) == 0 && (once.hi & ~word.hi) == 0);
  }
}

void values_that_do_not_fit_are_refused() {
  const Encoding encoding{Config{}};
  Instruction f;
  f.x_size = 65536;
  CHECK_FAULT(TILEFARM_VTA_FIELD_OVERFLOW, encoding.encode(f));
  Instruction gemm;
  gemm.opcode = static_cast<uint32_t>(Opcode::kGemm);
  gemm.wgt_in = 1024;
  CHECK_FAULT(TILEFARM_VTA_FIELD_OVERFLOW, encoding.encode(gemm));
  Instruction alu;
  alu.opcode = static_cast<uint32_t>(Opcode::kAlu);
  alu.imm = 32768;
  CHECK_FAULT(TILEFARM_VTA_FIELD_OVERFLOW, encoding.encode(alu));
  CHECK_FAULT(TILEFARM_VTA_FIELD_OVERFLOW, encoding.encode_uop({2048, 0, 0}));
  CHECK_FAULT(TILEFARM_VTA_BAD_INSTRUCTION, encoding.decode({5, 0}));
}

}  // namespace

int main() {
  layout_of_memory_instructions();
  layout_of_compute_instructions();
  layout_of_uops();
  round_trips(Config{});
  Config small;
  small.log_block = 3;
  small.log_uop_buff_size = 10;
  round_trips(small);
  values_that_do_not_fit_are_refused();
}
