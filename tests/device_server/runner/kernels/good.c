/* Kernels that are right. Buffers of `dense`: x[rows] INP tiles, w[1] WGT tile, y[rows] OUT tiles. */
#include "vta.h"

enum { ROWS = 6 };

static int record_reset(void* closure) {
  (void)closure;
  VTAUopLoopBegin(ROWS, 1, 0, 0);
  VTAUopPush(0, 1, 0, 0, 0, 0, 0, 0);
  VTAUopLoopEnd();
  return 0;
}

static int record_product(void* closure) {
  (void)closure;
  VTAUopLoopBegin(ROWS, 1, 1, 0);
  VTAUopPush(0, 0, 0, 0, 0, 0, 0, 0);
  VTAUopLoopEnd();
  return 0;
}

static int record_shift(void* closure) {
  (void)closure;
  VTAUopLoopBegin(ROWS, 1, 1, 0);
  VTAUopPush(1, 0, 0, 0, 0, 3, 1, 4);
  VTAUopLoopEnd();
  return 0;
}

/* y = low byte of (x . w transposed) >> 4 */
int32_t dense(void* const* buffers, const int64_t* offsets) {
  static void *reset, *product, *shift;
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTALoadBuffer2D(cmd, buffers[0], 0, ROWS, 1, ROWS, 0, 0, 0, 0, 0, INP);
  VTALoadBuffer2D(cmd, buffers[1], 0, 1, 1, 1, 0, 0, 0, 0, 0, WGT);
  VTADepPush(cmd, LOAD, COMPUTE);
  VTAPushGEMMOp(&reset, record_reset, 0, 0);
  VTADepPop(cmd, LOAD, COMPUTE);
  VTAPushGEMMOp(&product, record_product, 0, 0);
  VTAPushALUOp(&shift, record_shift, 0, 0);
  VTADepPush(cmd, COMPUTE, STORE);
  VTADepPop(cmd, COMPUTE, STORE);
  VTAStoreBuffer2D(cmd, 0, OUT, buffers[2], 0, ROWS, 1, ROWS);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

/* On the host: every byte of the second buffer is one more than in the first; 64 bytes. */
int32_t increment(void* const* buffers, const int64_t* offsets) {
  const uint8_t* from = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[0]);
  uint8_t* to = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[1]);
  (void)offsets;
  for (int k = 0; k < 64; ++k) to[k] = (uint8_t)(from[k] + 1);
  return 0;
}

int32_t no_work(void* const* buffers, const int64_t* offsets) {
  (void)buffers;
  (void)offsets;
  VTASynchronize(VTATLSCommandHandle(), 1u << 31);
  return 0;
}
