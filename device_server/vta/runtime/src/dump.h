// Instructions and micro-ops for people: everything that their bits say, one line each.
#ifndef TILEFARM_DUMP_H_
#define TILEFARM_DUMP_H_

#include <string>

#include "encoding.h"

namespace tilefarm {

// As `tilefarm vta show` prints it (device_server/vta/programs/disassembly.py):
// "load    load.inp       sram=0 dram=0x40 y=3 x=14 stride=28 pad=1,0,1,1 push=compute"
std::string line(const Instruction& instruction);

// With its number in front, in six columns.
std::string dump(size_t index, const Instruction& instruction);

// "uop 3: dst 1 src 2 wgt 0"
std::string dump(size_t index, const Uop& uop);

}  // namespace tilefarm

#endif  // TILEFARM_DUMP_H_
