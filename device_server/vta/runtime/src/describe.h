// Instructions and modules in words, for timelines and reasons.
#ifndef TILEFARM_DESCRIBE_H_
#define TILEFARM_DESCRIBE_H_

#include <string>

#include "encoding.h"

namespace tilefarm {

const char* module_name(Module module);
std::string memory_name(Memory memory);  // "inp"; "mem7" where there is none
std::string alu_name(uint32_t opcode);   // "shr"; "op7" where there is none
std::string upper(std::string word);

// For example "LOAD INP 14x16", "GEMM 196 uops", "ALU shr 64 uops", "NOP load", "FINISH".
std::string describe(const Instruction& instruction);

}  // namespace tilefarm

#endif  // TILEFARM_DESCRIBE_H_
