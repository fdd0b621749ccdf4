#include "uop_cache.h"

#include <algorithm>

#include "error.h"

namespace tilefarm {

bool UopCache::would_overflow(const UopKernel& kernel) const {
  const bool in_image = kernel.place.epoch == epoch_;
  return !in_image && (image_.size() + kernel.words().size()) * kUopNbytes > kUopImageNbytes;
}

bool UopCache::admit(UopKernel& kernel) {
  if (kernel.place.epoch == epoch_ && kernel.place.resident) return false;
  if (!as_original_ && share(kernel)) return false;
  const size_t count = kernel.words().size();
  if (count > depth_) {
    fail(TILEFARM_VTA_SRAM_RANGE, "a kernel of %zu micro-ops exceeds the buffer's %u", count,
         depth_);
  }
  if (kernel.place.epoch != epoch_) append_to_image(kernel);
  kernel.place.sram_begin = make_room(static_cast<uint32_t>(count));
  kernel.place.resident = true;
  residents_.push_back({&kernel, kernel.place.sram_begin, end_});
  return true;
}

// Resets and ALU operations on one tile differ in their instruction, not in their micro-ops.
bool UopCache::share(UopKernel& kernel) {
  const auto found = std::find_if(residents_.begin(), residents_.end(), [&](const Resident& r) {
    return r.kernel->words() == kernel.words();
  });
  if (found == residents_.end()) return false;
  const Resident same = *found;
  kernel.place = same.kernel->place;
  residents_.push_back({&kernel, same.begin, same.end});
  return true;
}

// Begins again at 0 when the end is reached, and evicts what the new kernel overlaps.
uint32_t UopCache::make_room(uint32_t count) {
  const uint32_t begin = end_ + count > depth_ ? 0 : end_;
  end_ = begin + count;
  const auto overlaps = [&](const Resident& r) { return r.begin < end_ && begin < r.end; };
  for (const Resident& r : residents_) {
    if (!overlaps(r)) continue;
    if (as_original_) {
      fail(TILEFARM_VTA_SRAM_RANGE,
           "more than %u micro-ops in one run: the original runtime evicts the first ones and then "
           "loads others in their place",
           depth_);
    }
    r.kernel->place.resident = false;
  }
  residents_.erase(std::remove_if(residents_.begin(), residents_.end(), overlaps),
                   residents_.end());
  return begin;
}

void UopCache::append_to_image(UopKernel& kernel) {
  kernel.place.epoch = epoch_;
  kernel.place.dram_index = static_cast<uint32_t>(image_.size());
  kernel.place.resident = false;
  image_.insert(image_.end(), kernel.words().begin(), kernel.words().end());
}

void UopCache::clear() {
  ++epoch_;
  end_ = 0;
  residents_.clear();
  image_.clear();
}

}  // namespace tilefarm
