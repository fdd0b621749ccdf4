// The one artifact of this child: a shared object, its entries, and where it lies in memory.
#ifndef TILEFARM_RUNNER_ARTIFACT_H_
#define TILEFARM_RUNNER_ARTIFACT_H_

#include <cstdint>
#include <string>

#include "helpers.h"

namespace tilefarm::runner {

using Entry = int32_t (*)(void* const* buffers, const int64_t* offsets);

struct AddressRange {
  uintptr_t begin = 0, end = 0;
};

class Artifact {
 public:
  explicit Artifact(const std::string& path);  // kLoad when the linker refuses it
  Entry entry(const std::string& symbol) const;
  // Lets kernels that are made for it share their work; others do not ask.
  void give(Share share) const;
  AddressRange addresses() const;

 private:
  void* handle_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ARTIFACT_H_
