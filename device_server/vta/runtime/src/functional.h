// What the instructions compute, bit for bit, in token order; knows nothing of time.
//
// Semantics are those of the original's functional simulator: STORE truncates ACC, ALU immediates
// act on dst. Where hardware would hang or wrap around an index, a Fault says so.
#ifndef TILEFARM_FUNCTIONAL_H_
#define TILEFARM_FUNCTIONAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config.h"
#include "dram.h"
#include "encoding.h"
#include "matrix/matrix_path.h"
#include "tokens.h"

namespace tilefarm {

class Functional {
 public:
  // `path` names the matrix unit's implementation; empty for the fastest.
  Functional(const Config& config, const Encoding& encoding, const std::string& path = "");
  const std::vector<Uop>& uops() const { return uop_; }  // the micro-op buffer
  const int32_t* acc() const { return acc_[0].words; }   // int32[depth][batch][block]
  void reset();                                          // on-chip buffers to zero

  // Executes one instruction other than FINISH; adds to the moved bytes and executed micro-ops.
  void execute(const Instruction& instruction, Dram& dram, tilefarm_vta_counters& counters);

 private:
  // On-chip memory begins at multiples of 64 bytes, so that no vector crosses a host's cache line.
  union alignas(64) CacheLine {
    uint8_t bytes[64];
    int32_t words[16];
  };
  static std::vector<CacheLine> memory(size_t nbytes);
  struct Indices {
    uint32_t dst, src, wgt;
  };

  void load(const Instruction& f, Dram& dram, tilefarm_vta_counters& counters);
  void store(const Instruction& f, Dram& dram, tilefarm_vta_counters& counters);
  void gemm(const Instruction& f);
  void alu(const Instruction& f);
  // The end of the ACC elements that it writes.
  uint64_t check_indices(const Instruction& f) const;
  // The largest index.
  uint64_t check_one_index(const Instruction& f, const char* name, uint32_t depth, uint32_t largest,
                           uint32_t out_factor, uint32_t in_factor) const;
  void check_transfer(const Instruction& f, uint32_t depth) const;
  // An instruction that was checked may write the elements before `end`.
  void touch(Memory memory, uint64_t end);
  uint32_t& touched(Memory memory);
  const uint8_t* source_rows(const Instruction& f, const Dram& dram, uint32_t nbytes) const;
  int32_t* acc_tile(size_t index) { return acc_[0].words + index * shape_.acc_elements(); }
  void fill(Memory memory, uint32_t index, uint32_t count);
  void take_row(Memory memory, uint32_t index, uint32_t count, const uint8_t* from);
  template <typename Body>
  void for_each(const Instruction& f, const Body& body) const;

  const Config config_;
  const Encoding encoding_;
  const TileShape shape_;
  const MatrixPath& path_;
  const size_t inp_stride_, wgt_stride_;  // bytes of a packed element
  std::vector<Uop> uop_;
  std::vector<CacheLine> inp_, wgt_, acc_;
  // Of each buffer, how many of its first elements may be other than zero: kernels use few, and a
  // page that is not written is shared with the process that this one was forked from.
  uint32_t uop_touched_, inp_touched_, wgt_touched_, acc_touched_;
};

// Bytes in DRAM of one element of a memory type; BAD_INSTRUCTION for an unknown type.
uint32_t element_nbytes(const Config& config, Memory memory);

}  // namespace tilefarm

#endif  // TILEFARM_FUNCTIONAL_H_
