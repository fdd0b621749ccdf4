// What programs of a processor alone run on: buffers are memory of this process, and their handles
// are addresses. There is no accelerator: whoever calls for one ends, as with a board's library.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tilefarm_vta.h"
#include "vta_runtime.h"

namespace {

constexpr size_t kPageNbytes = 4096;

[[noreturn]] void refuse(const char* function) {
  std::fprintf(stderr, "%s: this target has no accelerator\n", function);
  std::abort();
}

template <typename... Any>
void unused(const Any&...) {}

}  // namespace

void* VTABufferAlloc(size_t nbytes) {
  const size_t pages = (nbytes + kPageNbytes - 1) / kPageNbytes;
  void* buffer = std::aligned_alloc(kPageNbytes, (pages == 0 ? 1 : pages) * kPageNbytes);
  if (buffer != nullptr) std::memset(buffer, 0, nbytes);  // touched now, not while it is timed
  return buffer;
}

void VTABufferFree(void* buffer) { std::free(buffer); }

void VTABufferCopy(const void* from, size_t from_offset, void* to, size_t to_offset,
                               size_t nbytes, int) {
  std::memcpy(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset,
              nbytes);
}

const char* tilefarm_vta_build_id(void) {
  return "tilefarm-host " TILEFARM_VERSION " gcc " __VERSION__;
}

void* VTATLSCommandHandle() { return nullptr; }
void* VTABufferCPUPtr(void*, void* buffer) { return buffer; }
void VTAWriteBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}
void VTAReadBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}
void VTASynchronize(void*, uint32_t) {}

#define REFUSE(result, name, parameters, names) \
  result name parameters {                      \
    unused names;                               \
    refuse(#name);                              \
  }
VTA_QUEUING(REFUSE)
