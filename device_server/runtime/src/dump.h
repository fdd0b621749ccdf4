// Instructions and micro-ops for people: everything that their bits say, one line each.
#ifndef TILEFARM_DUMP_H_
#define TILEFARM_DUMP_H_

#include <string>

#include "encoding.h"

namespace tilefarm {

// "12 load: LOAD INP sram 0 dram 4096 rows 3 x 14 stride 28 pad 1 0 1 1, waits for compute, tells
// compute". Pads are top, bottom, left, right; indices and sizes count elements of the memory.
std::string dump(size_t index, const Instruction& instruction);

// "uop 3: dst 1 src 2 wgt 0"
std::string dump(size_t index, const Uop& uop);

}  // namespace tilefarm

#endif  // TILEFARM_DUMP_H_
