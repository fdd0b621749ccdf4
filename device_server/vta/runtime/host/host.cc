// What programs of a processor alone run on: buffers are memory of this process, and their handles
// are addresses. There is no accelerator: whoever calls for one ends, as with a board's library.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define HOST_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kPageNbytes = 4096;

[[noreturn]] void refuse(const char* function) {
  std::fprintf(stderr, "%s: this target has no accelerator\n", function);
  std::abort();
}

}  // namespace

HOST_EXPORT void* VTABufferAlloc(size_t nbytes) {
  const size_t pages = (nbytes + kPageNbytes - 1) / kPageNbytes;
  void* buffer = std::aligned_alloc(kPageNbytes, (pages == 0 ? 1 : pages) * kPageNbytes);
  if (buffer != nullptr) std::memset(buffer, 0, nbytes);  // touched now, not while it is timed
  return buffer;
}

HOST_EXPORT void VTABufferFree(void* buffer) { std::free(buffer); }

HOST_EXPORT void VTABufferCopy(const void* from, size_t from_offset, void* to, size_t to_offset,
                               size_t nbytes, int) {
  std::memcpy(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset,
              nbytes);
}

HOST_EXPORT void* VTATLSCommandHandle() { return nullptr; }
HOST_EXPORT void* VTABufferCPUPtr(void*, void* buffer) { return buffer; }
HOST_EXPORT void VTAWriteBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}
HOST_EXPORT void VTAReadBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}
HOST_EXPORT void VTASynchronize(void*, uint32_t) {}

#define REFUSE(name) \
  HOST_EXPORT void name() { refuse(#name); }
REFUSE(VTALoadBuffer2D)
REFUSE(VTAStoreBuffer2D)
REFUSE(VTAUopPush)
REFUSE(VTAUopLoopBegin)
REFUSE(VTAUopLoopEnd)
REFUSE(VTAPushGEMMOp)
REFUSE(VTAPushALUOp)
REFUSE(VTADepPush)
REFUSE(VTADepPop)
