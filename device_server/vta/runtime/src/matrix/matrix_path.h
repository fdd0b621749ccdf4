// The matrix unit, ACC += INP x WGT transposed, in several implementations with equal results.
//
// Each keeps INP and WGT elements in the layout that suits it, so elements are packed as they are
// loaded; ACC elements are always int32[batch][block].
#ifndef TILEFARM_MATRIX_MATRIX_PATH_H_
#define TILEFARM_MATRIX_MATRIX_PATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "../encoding.h"

namespace tilefarm {

struct TileShape {
  uint32_t batch;
  uint32_t block;
  uint32_t acc_elements() const { return batch * block; }
};

// The buffers behind a GEMM instruction whose indices are all in range.
struct MatrixBuffers {
  const Uop* uops;
  const uint8_t* inp;  // packed
  const uint8_t* wgt;  // packed
  int32_t* acc;
};

struct MatrixPath {
  const char* name;
  bool (*has_machine)();                     // whether this processor can run it
  bool (*has_shape)(const TileShape&);       // whether it is made for tiles of this shape
  uint32_t (*inp_stride)(const TileShape&);  // bytes of a packed element
  uint32_t (*wgt_stride)(const TileShape&);
  uint8_t wgt_zero_byte;  // what a packed weight of 0 is made of; of INP it is 0
  void (*pack_inp)(const TileShape&, const int8_t* from, uint8_t* to);
  void (*pack_wgt)(const TileShape&, const int8_t* from, uint8_t* to);
  void (*run)(const TileShape&, const Instruction& gemm, const MatrixBuffers&);
};

// Those that this machine can run, the fastest first. The last two are "portable", which compilers
// turn into what vector code they can, and "scalar", one product at a time: what others are
// measured against.
const std::vector<const MatrixPath*>& matrix_paths();

// The named path, or the fastest for an empty name; `portable` where that is not made for the
// shape. BAD_ARGUMENT for a name that is unknown or cannot run here.
const MatrixPath& matrix_path(const std::string& name, const TileShape& shape);

// Calls body(acc, inp, wgt) with the packed elements of every micro-op of every iteration.
template <typename Body>
inline __attribute__((always_inline)) void for_each_tile(const Instruction& f,
                                                         const MatrixBuffers& buffers,
                                                         size_t acc_elements, size_t inp_stride,
                                                         size_t wgt_stride, const Body& body) {
  const Uop* begin = buffers.uops + f.uop_begin;
  const Uop* end = buffers.uops + f.uop_end;
  for (uint32_t o = 0; o < f.iter_out; ++o) {
    for (uint32_t i = 0; i < f.iter_in; ++i) {
      int32_t* acc = buffers.acc + (size_t{o} * f.dst_out + size_t{i} * f.dst_in) * acc_elements;
      const uint8_t* inp =
          buffers.inp + (size_t{o} * f.src_out + size_t{i} * f.src_in) * inp_stride;
      const uint8_t* wgt =
          buffers.wgt + (size_t{o} * f.wgt_out + size_t{i} * f.wgt_in) * wgt_stride;
      for (const Uop* u = begin; u != end; ++u) {
        body(acc + u->dst * acc_elements, inp + u->src * inp_stride, wgt + u->wgt * wgt_stride);
      }
    }
  }
}

extern const MatrixPath kScalarPath, kPortablePath;
#if defined(__x86_64__)
extern const MatrixPath kAvx2Path, kAvx512VnniPath;
#elif defined(__aarch64__)
extern const MatrixPath kNeonPath;
#endif

}  // namespace tilefarm

#endif  // TILEFARM_MATRIX_MATRIX_PATH_H_
