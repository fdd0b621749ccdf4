#include "dump.h"

#include <cstdio>
#include <initializer_list>

#include "describe.h"

namespace tilefarm {
namespace {

std::string mnemonic(const Instruction& f) {
  switch (f.op()) {
    case Opcode::kLoad:
    case Opcode::kStore:
      return std::string(f.is_nop() ? "nop." : "") +
             (f.op() == Opcode::kStore ? "store." : "load.") + memory_name(f.mem());
    case Opcode::kGemm: return f.reset ? "gemm.reset" : "gemm";
    case Opcode::kAlu: return "alu." + alu_name(f.alu_opcode) + (f.use_imm ? ".imm" : "");
    case Opcode::kFinish: return "finish";
  }
  return "unknown";
}

std::string number(int64_t value, bool hexadecimal) {
  if (!hexadecimal) return std::to_string(value);
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string operands(const Instruction& f) {
  std::string text;
  visit_operands(f.op(), f, [&](const Operand& operand, std::initializer_list<int64_t> values) {
    bool any = operand.always && !f.is_nop();
    for (const int64_t value : values) any |= value != 0;
    if (!any) return;
    const char* before = "=";
    text += std::string(" ") + operand.key;
    for (const int64_t value : values) {
      text += before + number(value, operand.hexadecimal);
      before = operand.separator;
    }
  });
  return text;
}

// The modules on either side, whose tokens these are.
std::string tokens(const char* verb, bool prev, bool next, Module module) {
  if (!prev && !next) return "";
  const auto neighbour = [&](int side) {
    const int at = static_cast<int>(module) + side;
    return std::string(at < 0 || at >= kModules ? "nobody" : kModuleNames[at]);
  };
  std::string text = std::string(" ") + verb + "=";
  if (prev) text += neighbour(-1);
  if (prev && next) text += ",";
  return next ? text + neighbour(1) : text;
}

std::string padded(const std::string& text, size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

}  // namespace

std::string line(const Instruction& f) {
  const std::string rest = operands(f) + tokens("pop", f.pop_prev, f.pop_next, f.module()) +
                           tokens("push", f.push_prev, f.push_next, f.module());
  const std::string name = mnemonic(f);
  return padded(module_name(f.module()), 7) + " " + (rest.empty() ? name : padded(name, 14)) + rest;
}

std::string dump(size_t index, const Instruction& f) {
  const std::string number = std::to_string(index);
  return std::string(number.size() < 6 ? 6 - number.size() : 0, ' ') + number + " " + line(f);
}

std::string dump(size_t index, const Uop& uop) {
  return "uop " + std::to_string(index) + ": dst " + std::to_string(uop.dst) + " src " +
         std::to_string(uop.src) + " wgt " + std::to_string(uop.wgt);
}

}  // namespace tilefarm
