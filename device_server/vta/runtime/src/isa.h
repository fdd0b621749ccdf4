// VTA's instruction set: numbers, names, fields and where their bits lie.
//
// Made of proto/tilefarm/vta_isa.py by device_server/vta/runtime/generate.py; change that table.
#ifndef TILEFARM_ISA_H_
#define TILEFARM_ISA_H_

#include <cstdint>
#include <initializer_list>

namespace tilefarm {

enum class Opcode : uint32_t {
  kLoad = 0,    // fills a part of an on-chip memory from DRAM, with zeros around it
  kStore = 1,   // writes results to DRAM
  kGemm = 2,    // acc[dst] += inp[src] . wgt[wgt] transposed, for every executed micro-op
  kFinish = 3,  // ends the stream
  kAlu = 4,     // acc[dst] = operation(acc[dst], operand), for every executed micro-op
};

enum class Memory : uint32_t {
  kUop = 0,   // micro-ops of 32 bits
  kWgt = 1,   // tiles of weights, block x block of int8
  kInp = 2,   // tiles of inputs, batch x block of int8
  kAcc = 3,   // tiles of accumulators, batch x block of int32
  kOut = 4,   // the low 8 bits of accumulators; only STORE names it
  kAcc8 = 5,  // accumulators from int8 in DRAM; the Chisel and HLS designs lack it
};

enum class AluOp : uint32_t {
  kMin = 0,  // the smaller one, signed
  kMax = 1,  // the larger one, signed
  kAdd = 2,  // the sum, wrapped to 32 bits
  kShr = 3,  // a shift to the right, rounding down; to the left by a negative operand
  kMul = 4,  // the product, wrapped to 32 bits; the Chisel and HLS designs lack it
};

enum class UopMode : uint32_t {
  kGemm = 0,  // the matrix unit
  kAlu = 1,   // the vector unit
};

enum class Module : uint32_t { kLoad = 0, kCompute = 1, kStore = 2 };
constexpr int kModules = 3;

// VTADepPush and VTADepPop number them from here on.
constexpr int kFirstStage = 1;
constexpr int stage_of(Module module) { return kFirstStage + static_cast<int>(module); }

constexpr uint32_t kOpcodes = 5;
constexpr int kOpcodeBits = 3;  // from bit 0 on
constexpr int kSramBaseBits = 16;
constexpr int kWordBits = 64;
constexpr int kUopBits = 32;

// Names by number.
inline constexpr const char* kMemoryNames[] = {"uop", "wgt", "inp", "acc", "out", "acc8"};
inline constexpr const char* kAluOpNames[] = {"min", "max", "add", "shr", "mul"};
inline constexpr const char* kModuleNames[] = {"load", "compute", "store"};

// Where an instruction is executed; the memory counts for a LOAD alone.
constexpr Module module_of(Opcode opcode, Memory memory) {
  if (opcode == Opcode::kStore) return Module::kStore;
  const bool input = memory == Memory::kWgt || memory == Memory::kInp;
  return opcode == Opcode::kLoad && input ? Module::kLoad : Module::kCompute;
}

// Bytes of one element in DRAM; 0 of what is no memory.
constexpr uint32_t element_nbytes(Memory memory, uint32_t batch, uint32_t block) {
  switch (memory) {
    case Memory::kUop: return 4;
    case Memory::kWgt: return block * block;
    case Memory::kInp: return batch * block;
    case Memory::kAcc: return batch * block * 4;
    case Memory::kOut: return batch * block;
    case Memory::kAcc8: return batch * block;
  }
  return 0;
}

// Bits of an index into each memory: log2 of its depth.
struct IndexBits {
  int uop = 0, wgt = 0, inp = 0, acc = 0;
};

constexpr int widest(int a, int b) { return a > b ? a : b; }

// How an operand is written: its values with a separator in between.
struct Operand {
  const char* key;
  const char* separator;
  bool hexadecimal;
  bool always;  // also where all values are 0
};

// Every field of every format; those of other formats stay 0.
struct InstructionFields {
  uint32_t opcode = 0;      // Opcode
  uint32_t pop_prev = 0;    // waits for a token of the module before
  uint32_t pop_next = 0;    // waits for a token of the module after
  uint32_t push_prev = 0;   // gives the module before a token, when it is done
  uint32_t push_next = 0;   // gives the module after a token, when it is done
  uint32_t memory = 0;      // Memory; OUT in a STORE
  uint32_t sram_base = 0;   // elements: first on-chip element
  uint32_t dram_base = 0;   // elements: first element in DRAM
  uint32_t y_size = 0;      // rows: rows
  uint32_t x_size = 0;      // elements: elements of a row; 0 is a NOP
  uint32_t x_stride = 0;    // elements: from one row to the next in DRAM
  uint32_t y_pad_0 = 0;     // rows: zeros above
  uint32_t y_pad_1 = 0;     // rows: zeros below
  uint32_t x_pad_0 = 0;     // elements: zeros to the left
  uint32_t x_pad_1 = 0;     // elements: zeros to the right
  uint32_t reset = 0;       // GEMM: acc[dst] = 0 instead of a product; the ALU ignores it
  uint32_t uop_begin = 0;   // micro-ops: first micro-op
  uint32_t uop_end = 0;     // micro-ops: micro-op after the last
  uint32_t iter_out = 0;    // iterations: extent of the outer loop
  uint32_t iter_in = 0;     // iterations: extent of the inner loop
  uint32_t dst_out = 0;     // acc elements: step of the dst index in the outer loop
  uint32_t dst_in = 0;      // acc elements: step of the dst index in the inner loop
  uint32_t src_out = 0;     // acc elements: step of the src index in the outer loop
  uint32_t src_in = 0;      // acc elements: step of the src index in the inner loop
  uint32_t wgt_out = 0;     // wgt elements: step of the wgt index in the outer loop
  uint32_t wgt_in = 0;      // wgt elements: step of the wgt index in the inner loop
  uint32_t alu_opcode = 0;  // AluOp
  uint32_t use_imm = 0;     // the operand is `imm`, not acc[src]
  int32_t imm = 0;          // the operand of all lanes
};

struct Uop {
  uint32_t dst = 0;  // acc elements: accumulator
  uint32_t src = 0;  // elements: input of a GEMM, accumulator of an ALU operation
  uint32_t wgt = 0;  // wgt elements: weights of a GEMM
};

// Calls visit(word, bit, width, field, name) for every field of an opcode's format.
template <typename Fields, typename Visit>
void visit_fields(Opcode opcode, const IndexBits& bits, Fields& f, const Visit& visit) {
  switch (opcode) {
    case Opcode::kLoad:
    case Opcode::kStore:
      visit(0, 0, 3, f.opcode, "opcode");
      visit(0, 3, 1, f.pop_prev, "pop_prev");
      visit(0, 4, 1, f.pop_next, "pop_next");
      visit(0, 5, 1, f.push_prev, "push_prev");
      visit(0, 6, 1, f.push_next, "push_next");
      visit(0, 7, 3, f.memory, "memory");
      visit(0, 10, 16, f.sram_base, "sram_base");
      visit(0, 26, 32, f.dram_base, "dram_base");
      visit(1, 0, 16, f.y_size, "y_size");
      visit(1, 16, 16, f.x_size, "x_size");
      visit(1, 32, 16, f.x_stride, "x_stride");
      visit(1, 48, 4, f.y_pad_0, "y_pad_0");
      visit(1, 52, 4, f.y_pad_1, "y_pad_1");
      visit(1, 56, 4, f.x_pad_0, "x_pad_0");
      visit(1, 60, 4, f.x_pad_1, "x_pad_1");
      return;
    case Opcode::kGemm:
      visit(0, 0, 3, f.opcode, "opcode");
      visit(0, 3, 1, f.pop_prev, "pop_prev");
      visit(0, 4, 1, f.pop_next, "pop_next");
      visit(0, 5, 1, f.push_prev, "push_prev");
      visit(0, 6, 1, f.push_next, "push_next");
      visit(0, 7, 1, f.reset, "reset");
      visit(0, 8, bits.uop, f.uop_begin, "uop_begin");
      visit(0, 8 + bits.uop, 1 + bits.uop, f.uop_end, "uop_end");
      visit(0, 9 + 2 * bits.uop, 14, f.iter_out, "iter_out");
      visit(0, 23 + 2 * bits.uop, 14, f.iter_in, "iter_in");
      visit(1, 0, bits.acc, f.dst_out, "dst_out");
      visit(1, bits.acc, bits.acc, f.dst_in, "dst_in");
      visit(1, 2 * bits.acc, bits.inp, f.src_out, "src_out");
      visit(1, 2 * bits.acc + bits.inp, bits.inp, f.src_in, "src_in");
      visit(1, 2 * bits.acc + 2 * bits.inp, bits.wgt, f.wgt_out, "wgt_out");
      visit(1, 2 * bits.acc + 2 * bits.inp + bits.wgt, bits.wgt, f.wgt_in, "wgt_in");
      return;
    case Opcode::kFinish:
      visit(0, 0, 3, f.opcode, "opcode");
      visit(0, 3, 1, f.pop_prev, "pop_prev");
      visit(0, 4, 1, f.pop_next, "pop_next");
      visit(0, 5, 1, f.push_prev, "push_prev");
      visit(0, 6, 1, f.push_next, "push_next");
      return;
    case Opcode::kAlu:
      visit(0, 0, 3, f.opcode, "opcode");
      visit(0, 3, 1, f.pop_prev, "pop_prev");
      visit(0, 4, 1, f.pop_next, "pop_next");
      visit(0, 5, 1, f.push_prev, "push_prev");
      visit(0, 6, 1, f.push_next, "push_next");
      visit(0, 7, 1, f.reset, "reset");
      visit(0, 8, bits.uop, f.uop_begin, "uop_begin");
      visit(0, 8 + bits.uop, 1 + bits.uop, f.uop_end, "uop_end");
      visit(0, 9 + 2 * bits.uop, 14, f.iter_out, "iter_out");
      visit(0, 23 + 2 * bits.uop, 14, f.iter_in, "iter_in");
      visit(1, 0, bits.acc, f.dst_out, "dst_out");
      visit(1, bits.acc, bits.acc, f.dst_in, "dst_in");
      visit(1, 2 * bits.acc, bits.acc, f.src_out, "src_out");
      visit(1, 3 * bits.acc, bits.acc, f.src_in, "src_in");
      visit(1, 4 * bits.acc, 3, f.alu_opcode, "alu_opcode");
      visit(1, 3 + 4 * bits.acc, 1, f.use_imm, "use_imm");
      visit(1, 4 + 4 * bits.acc, 16, f.imm, "imm");
      return;
  }
}

// The same for the fields of a micro-op, which has one word.
template <typename Fields, typename Visit>
void visit_uop_fields(const IndexBits& bits, Fields& f, const Visit& visit) {
  visit(0, 0, bits.acc, f.dst, "dst");
  visit(0, bits.acc, widest(bits.acc, bits.inp), f.src, "src");
  visit(0, bits.acc + widest(bits.acc, bits.inp), bits.wgt, f.wgt, "wgt");
}

// Calls visit(operand, values) for every operand that an opcode has in text, in order.
template <typename Visit>
void visit_operands(Opcode opcode, const InstructionFields& f, const Visit& visit) {
  using Values = std::initializer_list<int64_t>;
  switch (opcode) {
    case Opcode::kLoad:
    case Opcode::kStore:
      visit(Operand{"sram", ",", false, true}, Values{f.sram_base});
      visit(Operand{"dram", ",", true, true}, Values{f.dram_base});
      visit(Operand{"y", ",", false, true}, Values{f.y_size});
      visit(Operand{"x", ",", false, true}, Values{f.x_size});
      visit(Operand{"stride", ",", false, true}, Values{f.x_stride});
      visit(Operand{"pad", ",", false, false}, Values{f.y_pad_0, f.y_pad_1, f.x_pad_0, f.x_pad_1});
      return;
    case Opcode::kGemm:
      visit(Operand{"uops", "..", false, true}, Values{f.uop_begin, f.uop_end});
      visit(Operand{"loops", "x", false, true}, Values{f.iter_out, f.iter_in});
      visit(Operand{"dst", ",", false, true}, Values{f.dst_out, f.dst_in});
      visit(Operand{"src", ",", false, true}, Values{f.src_out, f.src_in});
      visit(Operand{"wgt", ",", false, true}, Values{f.wgt_out, f.wgt_in});
      return;
    case Opcode::kFinish: return;
    case Opcode::kAlu:
      visit(Operand{"uops", "..", false, true}, Values{f.uop_begin, f.uop_end});
      visit(Operand{"loops", "x", false, true}, Values{f.iter_out, f.iter_in});
      visit(Operand{"dst", ",", false, true}, Values{f.dst_out, f.dst_in});
      visit(Operand{"src", ",", false, true}, Values{f.src_out, f.src_in});
      visit(Operand{"imm", ",", false, false}, Values{f.imm});
      visit(Operand{"reset", ",", false, false}, Values{f.reset});
      return;
  }
}

}  // namespace tilefarm

#endif  // TILEFARM_ISA_H_
