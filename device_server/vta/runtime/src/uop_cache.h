// Which micro-op kernels lie in the UOP buffer, and the DRAM image that they are loaded from.
//
// As in the original, kernels are appended to the buffer and the oldest make room from the start
// when it is full. Unlike there, the DRAM image only grows within a run, so a kernel that was
// evicted is still where its earlier LOAD expects it, and a kernel whose micro-ops are in the buffer
// already, as another one's, is not loaded once more.
//
// Asked to do as the original, it loads every kernel for itself, and fails where the original would
// load wrong micro-ops: there the image loses what is evicted, before the run has begun.
#ifndef TILEFARM_UOP_CACHE_H_
#define TILEFARM_UOP_CACHE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "config.h"
#include "uop_kernel.h"

namespace tilefarm {

class UopCache {
 public:
  explicit UopCache(uint32_t depth, bool as_original = false)
      : depth_(depth), as_original_(as_original) {}

  // Makes the kernel resident. Returns true when that needs a LOAD to `kernel.place`.
  bool admit(UopKernel& kernel);

  // Whether the DRAM image has no room for the kernel until the next `clear`.
  bool would_overflow(const UopKernel& kernel) const;

  const std::vector<uint32_t>& image() const { return image_; }
  void clear();  // after a run: nothing is resident, the image is empty

 private:
  struct Resident {
    UopKernel* kernel;
    uint32_t begin, end;
  };

  bool share(UopKernel& kernel);  // takes the place of equal micro-ops, if there are any
  uint32_t make_room(uint32_t count);
  void append_to_image(UopKernel& kernel);

  uint32_t depth_;
  bool as_original_;
  uint64_t epoch_ = 1;
  uint32_t end_ = 0;                 // of the most recently admitted kernel
  std::vector<Resident> residents_;  // in the order of admission
  std::vector<uint32_t> image_;
};

constexpr uint64_t kUopImageNbytes = uint64_t{32} << 20;

}  // namespace tilefarm

#endif  // TILEFARM_UOP_CACHE_H_
