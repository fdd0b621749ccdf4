#include "dump.h"

#include <initializer_list>

#include "describe.h"

namespace tilefarm {
namespace {

struct Named {
  const char* name;
  uint32_t value;
};

std::string listed(std::initializer_list<Named> values) {
  std::string text;
  for (const Named& v : values) text += std::string(" ") + v.name + " " + std::to_string(v.value);
  return text;
}

std::string transfer(const Instruction& f) {
  std::string text = f.op() == Opcode::kLoad ? "LOAD " : "STORE ";
  text += memory_name(f.mem());
  text += listed({{"sram", f.sram_base}, {"dram", f.dram_base}, {"rows", f.y_size}});
  text += listed({{"x", f.x_size}, {"stride", f.x_stride}});
  if (f.y_pad_0 || f.y_pad_1 || f.x_pad_0 || f.x_pad_1) {
    text += listed({{"pad", f.y_pad_0}}) + " " + std::to_string(f.y_pad_1) + " " +
            std::to_string(f.x_pad_0) + " " + std::to_string(f.x_pad_1);
  }
  return text;
}

std::string factors(const char* name, uint32_t outer, uint32_t inner) {
  return std::string(" ") + name + " +" + std::to_string(outer) + " +" + std::to_string(inner);
}

std::string loops(const Instruction& f) {
  std::string text = " uops " + std::to_string(f.uop_begin) + ".." + std::to_string(f.uop_end) +
                     " loops " + std::to_string(f.iter_out) + " x " + std::to_string(f.iter_in) +
                     factors("dst", f.dst_out, f.dst_in) + factors("src", f.src_out, f.src_in);
  if (f.op() == Opcode::kGemm) text += factors("wgt", f.wgt_out, f.wgt_in);
  return text;
}

std::string operation(const Instruction& f) {
  if (f.is_nop()) return "NOP";
  switch (f.op()) {
    case Opcode::kLoad:
    case Opcode::kStore: return transfer(f);
    case Opcode::kGemm: return (f.reset ? "GEMM reset" : "GEMM") + loops(f);
    case Opcode::kAlu:
      return std::string("ALU ") + alu_name(f.alu_opcode) +
             (f.use_imm ? " imm " + std::to_string(f.imm) : "") + loops(f);
    case Opcode::kFinish: return "FINISH";
  }
  return "unknown";
}

std::string tokens(const char* verb, bool prev, bool next, Module module) {
  if (!prev && !next) return "";
  const bool compute = module == Module::kCompute;
  const char* before = compute ? "load" : module == Module::kStore ? "compute" : "nobody";
  const char* after = compute ? "store" : module == Module::kLoad ? "compute" : "nobody";
  std::string text = std::string(", ") + verb + " ";
  if (prev) text += before;
  if (prev && next) text += " and ";
  if (next) text += after;
  return text;
}

}  // namespace

std::string dump(size_t index, const Instruction& f) {
  return std::to_string(index) + " " + module_name(f.module()) + ": " + operation(f) +
         tokens("waits for", f.pop_prev, f.pop_next, f.module()) +
         tokens("tells", f.push_prev, f.push_next, f.module());
}

std::string dump(size_t index, const Uop& uop) {
  return "uop " + std::to_string(index) + ":" +
         listed({{"dst", uop.dst}, {"src", uop.src}, {"wgt", uop.wgt}});
}

}  // namespace tilefarm
