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
  // The linker's reason when it refuses the file is told without the path: it may be no name.
  explicit Artifact(const std::string& path);
  Entry entry(const std::string& symbol) const;
  // Lets kernels that are made for it share their work; others do not ask.
  void give(Share share) const;
  AddressRange addresses() const;

 private:
  void* handle_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ARTIFACT_H_
