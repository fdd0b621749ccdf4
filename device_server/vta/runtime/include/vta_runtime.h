/* VTA's runtime: the functions that a board's library exports and kernels call, as TVM has them.
 * A list calls X(result, name, (parameters), (their names)) for each of its functions.
 *
 * Made of proto/tilefarm/vta_runtime.py by device_server/vta/runtime/generate.py, not by hand.
 */
#ifndef TILEFARM_VTA_RUNTIME_H_
#define TILEFARM_VTA_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

/* What a host calls. */
#define VTA_HOSTS(X) \
  X(void*, VTABufferAlloc, (size_t nbytes), (nbytes)) \
  X(void, VTABufferFree, (void* buffer), (buffer)) \
  X(void, VTABufferCopy, (const void* from, size_t from_offset, void* to, size_t to_offset, \
    size_t nbytes, int kind), (from, from_offset, to, to_offset, nbytes, kind)) \
  X(void, VTAWriteBarrier, (void* command, void* buffer, uint32_t bits, uint32_t start, uint32_t \
    extent), (command, buffer, bits, start, extent)) \
  X(void, VTAReadBarrier, (void* command, void* buffer, uint32_t bits, uint32_t start, uint32_t \
    extent), (command, buffer, bits, start, extent))

/* What kernels get at the queue and at their buffers with. */
#define VTA_HANDLING(X) \
  X(void*, VTATLSCommandHandle, (void), ()) \
  X(void*, VTABufferCPUPtr, (void* command, void* buffer), (command, buffer))

/* What kernels have an accelerator do. */
#define VTA_QUEUING(X) \
  X(void, VTALoadBuffer2D, (void* command, void* from, uint32_t from_offset, uint32_t x, \
    uint32_t y, uint32_t stride, uint32_t x_pad_0, uint32_t y_pad_0, uint32_t x_pad_1, uint32_t \
    y_pad_1, uint32_t sram, uint32_t memory), (command, from, from_offset, x, y, stride, \
    x_pad_0, y_pad_0, x_pad_1, y_pad_1, sram, memory)) \
  X(void, VTAStoreBuffer2D, (void* command, uint32_t sram, uint32_t memory, void* to, uint32_t \
    to_offset, uint32_t x, uint32_t y, uint32_t stride), (command, sram, memory, to, to_offset, \
    x, y, stride)) \
  X(void, VTAUopPush, (uint32_t mode, uint32_t reset, uint32_t dst, uint32_t src, uint32_t wgt, \
    uint32_t opcode, uint32_t use_imm, int32_t imm), (mode, reset, dst, src, wgt, opcode, \
    use_imm, imm)) \
  X(void, VTAUopLoopBegin, (uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt), (extent, \
    dst, src, wgt)) \
  X(void, VTAUopLoopEnd, (void), ()) \
  X(int, VTAPushGEMMOp, (void** handle, int (*record)(void*), void* closure, int nbytes), \
    (handle, record, closure, nbytes)) \
  X(int, VTAPushALUOp, (void** handle, int (*record)(void*), void* closure, int nbytes), \
    (handle, record, closure, nbytes)) \
  X(int, VTADepPush, (void* command, int from, int to), (command, from, to)) \
  X(int, VTADepPop, (void* command, int from, int to), (command, from, to))

/* What runs what is queued. */
#define VTA_SYNCHRONIZING(X) \
  X(void, VTASynchronize, (void* command, uint32_t wait_cycles), (command, wait_cycles))

/* What a board's library may lack. */
#define VTA_RARE(X) \
  X(void, VTARuntimeShutdown, (void), ()) \
  X(void, VTASetDebugMode, (void* command, int flags), (command, flags))

#define VTA_DECLARED(result, name, parameters, names) \
  __attribute__((visibility("default"))) result name parameters;

#ifdef __cplusplus
extern "C" {
#endif
VTA_HOSTS(VTA_DECLARED)
VTA_HANDLING(VTA_DECLARED)
VTA_QUEUING(VTA_DECLARED)
VTA_SYNCHRONIZING(VTA_DECLARED)
VTA_RARE(VTA_DECLARED)
#ifdef __cplusplus
}
#endif

#endif /* TILEFARM_VTA_RUNTIME_H_ */
