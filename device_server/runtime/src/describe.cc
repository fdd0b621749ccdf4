#include "describe.h"

namespace tilefarm {
namespace {

std::string transfer(const char* verb, const Instruction& f) {
  return std::string(verb) + " " + memory_name(f.mem()) + " " + std::to_string(f.y_size) + "x" +
         std::to_string(f.x_size);
}

}  // namespace

const char* alu_name(uint32_t opcode) {
  constexpr const char* kNames[] = {"min", "max", "add", "shr", "mul"};
  return opcode < 5 ? kNames[opcode] : "unknown";
}

const char* module_name(Module module) {
  constexpr const char* kNames[] = {"load", "compute", "store"};
  return kNames[static_cast<uint32_t>(module)];
}

const char* memory_name(Memory memory) {
  constexpr const char* kNames[] = {"UOP", "WGT", "INP", "ACC", "OUT", "ACC8"};
  const auto id = static_cast<uint32_t>(memory);
  return id < 6 ? kNames[id] : "unknown memory";
}

std::string describe(const Instruction& f) {
  if (f.is_nop()) return std::string("NOP ") + module_name(f.module());
  const std::string uops = " " + std::to_string(f.executed_uops()) + " uops";
  switch (f.op()) {
    case Opcode::kLoad: return transfer("LOAD", f);
    case Opcode::kStore: return transfer("STORE", f);
    case Opcode::kGemm: return (f.reset ? "GEMM reset" : "GEMM") + uops;
    case Opcode::kAlu:
      return std::string("ALU ") + alu_name(f.alu_opcode) + (f.use_imm ? " imm" : "") + uops;
    case Opcode::kFinish: return "FINISH";
  }
  return "unknown";
}

}  // namespace tilefarm
