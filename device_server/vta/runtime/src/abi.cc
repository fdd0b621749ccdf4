// The original VTA runtime's exported functions.

#include <cstdint>
#include <cstring>

#include "session.h"
#include "vta_runtime.h"

using tilefarm::Runtime;
using tilefarm::Session;
using tilefarm::Transfer;
using tilefarm::UopMode;
using tilefarm::UopPush;

namespace {

constexpr int kFromDevice = 2;
constexpr int kToDevice = 1;

Runtime& runtime() { return Session::get().runtime(); }

// Host pointer to a range of a device buffer, or the host pointer itself.
uint8_t* copy_end(const void* end, size_t offset, size_t nbytes, bool device) {
  if (!device) return const_cast<uint8_t*>(static_cast<const uint8_t*>(end)) + offset;
  const tilefarm::DataBuffer* buffer = runtime().accelerator().dram().find(end);
  if (buffer == nullptr) {
    tilefarm::fail(TILEFARM_VTA_BAD_ARGUMENT, "VTABufferCopy: %p is not a data buffer", end);
  }
  if (offset > buffer->nbytes || nbytes > buffer->nbytes - offset) {
    tilefarm::fail(TILEFARM_VTA_DRAM_RANGE, "VTABufferCopy: %zu bytes at %zu of a buffer of %llu",
                   nbytes, offset, static_cast<unsigned long long>(buffer->nbytes));
  }
  return buffer->host + offset;
}

}  // namespace

void* VTABufferAlloc(size_t nbytes) {
  void* handle = nullptr;
  Session::get().guarded([&] { handle = runtime().allocate(nbytes); });
  return handle;
}

void VTABufferFree(void* buffer) {
  Session::get().guarded([&] { runtime().release(buffer); });
}

void VTABufferCopy(const void* from, size_t from_offset, void* to, size_t to_offset,
                              size_t nbytes, int kind_mask) {
  Session::get().guarded([&] {
    const uint8_t* source = copy_end(from, from_offset, nbytes, kind_mask & kFromDevice);
    uint8_t* destination = copy_end(to, to_offset, nbytes, kind_mask & kToDevice);
    std::memmove(destination, source, nbytes);
  });
}

// A handle only in name: there is one queue.
void* VTATLSCommandHandle() {
  void* handle = nullptr;
  Session::get().guarded([&] { handle = &runtime(); });
  return handle;
}

// Another process's accelerator cannot be had again.
void VTARuntimeShutdown() {
  if (!runtime().is_connected()) Session::get().drop_runtime();
}

void VTASetDebugMode(void*, int flags) {
  Session::get().guarded([&] { runtime().set_debug(static_cast<uint32_t>(flags)); });
}

void* VTABufferCPUPtr(void*, void* buffer) {
  void* pointer = buffer;
  Session::get().guarded([&] {
    const tilefarm::DataBuffer* known = runtime().accelerator().dram().find(buffer);
    if (known != nullptr) pointer = known->host;
  });
  return pointer;
}

// Host and accelerator see one coherent memory.
void VTAWriteBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}
void VTAReadBarrier(void*, void*, uint32_t, uint32_t, uint32_t) {}

void VTALoadBuffer2D(void*, void* source, uint32_t source_offset, uint32_t x, uint32_t y,
                                uint32_t stride, uint32_t x_pad_before, uint32_t y_pad_before,
                                uint32_t x_pad_after, uint32_t y_pad_after, uint32_t sram,
                                uint32_t memory) {
  Session::get().unless_failed([&] {
    runtime().load(
        source, source_offset,
        Transfer{x, y, stride, x_pad_before, y_pad_before, x_pad_after, y_pad_after, sram, memory});
  });
}

void VTAStoreBuffer2D(void*, uint32_t sram, uint32_t memory, void* destination,
                                 uint32_t destination_offset, uint32_t x, uint32_t y,
                                 uint32_t stride) {
  Session::get().unless_failed([&] {
    runtime().store(destination, destination_offset,
                    Transfer{x, y, stride, 0, 0, 0, 0, sram, memory});
  });
}

void VTAUopPush(uint32_t mode, uint32_t reset, uint32_t dst, uint32_t src, uint32_t wgt,
                           uint32_t opcode, uint32_t use_imm, int32_t imm) {
  Session::get().unless_failed([&] {
    if (mode > 1) tilefarm::fail(TILEFARM_VTA_BAD_ARGUMENT, "micro-op mode %u", mode);
    runtime().recording().push(
        UopPush{static_cast<UopMode>(mode), reset, {dst, src, wgt}, opcode, use_imm, imm},
        runtime().accelerator().encoding());
  });
}

void VTAUopLoopBegin(uint32_t extent, uint32_t dst_factor, uint32_t src_factor,
                                uint32_t wgt_factor) {
  Session::get().unless_failed(
      [&] { runtime().recording().begin_loop({extent, dst_factor, src_factor, wgt_factor}); });
}

void VTAUopLoopEnd() {
  Session::get().unless_failed([&] { runtime().recording().end_loop(); });
}

int VTAPushGEMMOp(void** handle, int (*record)(void*), void* closure, int nbytes) {
  Session::get().unless_failed(
      [&] { runtime().push_kernel(UopMode::kGemm, handle, record, closure, nbytes); });
  return 0;
}

int VTAPushALUOp(void** handle, int (*record)(void*), void* closure, int nbytes) {
  Session::get().unless_failed(
      [&] { runtime().push_kernel(UopMode::kAlu, handle, record, closure, nbytes); });
  return 0;
}

int VTADepPush(void*, int from, int to) {
  Session::get().unless_failed([&] { runtime().push_dependence(from, to); });
  return 0;
}

int VTADepPop(void*, int from, int to) {
  Session::get().unless_failed([&] { runtime().pop_dependence(from, to); });
  return 0;
}

void VTASynchronize(void*, uint32_t) {
  Session::get().unless_failed([&] { runtime().synchronize(); });
}
