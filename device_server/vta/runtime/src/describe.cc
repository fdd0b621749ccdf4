#include "describe.h"

#include <cctype>
#include <iterator>

namespace tilefarm {
namespace {

std::string transfer(const char* verb, const Instruction& f) {
  return std::string(verb) + " " + upper(memory_name(f.mem())) + " " + std::to_string(f.y_size) +
         "x" + std::to_string(f.x_size);
}

}  // namespace

const char* module_name(Module module) { return kModuleNames[static_cast<uint32_t>(module)]; }

std::string memory_name(Memory memory) {
  const auto number = static_cast<uint32_t>(memory);
  return number < std::size(kMemoryNames) ? kMemoryNames[number] : "mem" + std::to_string(number);
}

std::string alu_name(uint32_t opcode) {
  return opcode < std::size(kAluOpNames) ? kAluOpNames[opcode] : "op" + std::to_string(opcode);
}

std::string upper(std::string word) {
  for (char& letter : word) letter = static_cast<char>(std::toupper(letter));
  return word;
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
