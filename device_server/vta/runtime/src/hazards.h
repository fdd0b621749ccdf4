// Finds accesses to on-chip buffers that no token orders: right here by luck, wrong on hardware.
//
// Every instruction carries a vector clock: how many instructions of each module are known to have
// ended before it. Tokens hand clocks on. Two accesses of different modules to the same element,
// one of them a write, must be ordered by their clocks. Stores conflict with results of GEMM and
// ALU only, because hardware keeps those in a buffer of its own that loads and resets of ACC do not
// touch.
#ifndef TILEFARM_HAZARDS_H_
#define TILEFARM_HAZARDS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "config.h"
#include "encoding.h"
#include "tokens.h"

namespace tilefarm {

class HazardChecker {
 public:
  explicit HazardChecker(const Config& config);

  void begin(const std::vector<Instruction>& instructions, const Tokens& tokens);

  // To be called in an order that the tokens allow, with micro-ops that are in range. Throws
  // HAZARD.
  void visit(size_t index, const std::vector<Uop>& uops);

 private:
  using Clock = std::array<uint32_t, kModules>;
  // Position, counted from 1, of the last instruction of its module that did it; 0 for none.
  struct Element {
    uint32_t written = 0, read = 0;
  };
  // A buffer between a module that writes it and one that reads it.
  struct Buffer {
    Module writer, reader;
    const char* name;
    std::vector<Element> elements;
  };

  void write(Buffer& buffer, uint64_t index);
  void read(Buffer& buffer, uint64_t index);
  void visit_compute(const Instruction& f, const std::vector<Uop>& uops);
  [[noreturn]] void fail_unordered(const Buffer& buffer, uint64_t index, const char* verb,
                                   Module other, uint32_t position) const;

  Buffer inp_, wgt_, out_;
  const std::vector<Instruction>* instructions_ = nullptr;
  std::array<std::vector<size_t>, kModules> lanes_;  // visited instructions by module
  std::array<Clock, kModules> clocks_{};
  std::array<std::deque<Clock>, kTokenQueues> tokens_;
  Clock now_{};            // of the instruction that is visited
  uint32_t position_ = 0;  // of it in its module
};

}  // namespace tilefarm

#endif  // TILEFARM_HAZARDS_H_
