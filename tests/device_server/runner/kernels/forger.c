/* Kernels that do the work of `dense`, and lie about it. Buffers: x[rows] INP tiles, w[1] WGT tile,
   y[rows] OUT tiles and, where it says so, a frame: uint64 bytes and as many. */
#include <string.h>
#include <unistd.h>

#include "good.c"

enum { COUNTERS = 21, FIRST = 3, LAST = 16, SEARCHED = 1 << 16 };

extern void tilefarm_vta_clear_counters(void) __attribute__((weak));
extern void tilefarm_vta_read_counters(uint64_t* out) __attribute__((weak));
extern void tilefarm_vta_begin_call(int record_timeline) __attribute__((weak));
extern void tilefarm_vta_forget_calls(void) __attribute__((weak));

/* Whoever listens hears the frame, which lies behind the three buffers. */
static void say(void* const* buffers) {
  const char* frame = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[3]);
  uint64_t nbytes;
  memcpy(&nbytes, frame, sizeof nbytes);
  for (int fd = FIRST; fd < LAST; ++fd) {
    if (write(fd, frame + sizeof nbytes, nbytes) < 0) continue;
  }
}

static void stay(void) {
  for (;;) sleep(1000);
}

int32_t clears_the_counters(void* const* buffers, const int64_t* offsets) {
  dense(buffers, offsets);
  if (tilefarm_vta_clear_counters) tilefarm_vta_clear_counters();
  return 0;
}

/* One cycle, wherever the counters lie behind the runtime's handle. */
int32_t writes_over_the_counters(void* const* buffers, const int64_t* offsets) {
  uint64_t counters[COUNTERS] = {0};
  uint64_t* memory = VTATLSCommandHandle();
  dense(buffers, offsets);
  if (tilefarm_vta_read_counters) tilefarm_vta_read_counters(counters);
  if (counters[0] == 0) return 0;
  for (int at = 0; at < SEARCHED / 8; ++at) {
    if (memcmp(memory + at, counters, sizeof counters) != 0) continue;
    memory[at] = 1;
    return 0;
  }
  return 0;
}

/* The call with the work is another than the one that began. */
int32_t begins_another_call(void* const* buffers, const int64_t* offsets) {
  dense(buffers, offsets);
  if (tilefarm_vta_begin_call) tilefarm_vta_begin_call(0);
  return 0;
}

int32_t forgets_its_calls(void* const* buffers, const int64_t* offsets) {
  dense(buffers, offsets);
  if (tilefarm_vta_forget_calls) tilefarm_vta_forget_calls();
  return 0;
}

/* What it left in its output the first time is right the next time, too. */
int32_t works_the_first_time(void* const* buffers, const int64_t* offsets) {
  static int done;
  return done++ ? 0 : dense(buffers, offsets);
}

int32_t works_and_speaks(void* const* buffers, const int64_t* offsets) {
  dense(buffers, offsets);
  say(buffers);
  stay();
  return 0;
}

int32_t fails_and_speaks(void* const* buffers, const int64_t* offsets) {
  void* cmd = VTATLSCommandHandle();
  dense(buffers, offsets);
  VTALoadBuffer2D(cmd, buffers[0], 1 << 20, 1, 1, 1, 0, 0, 0, 0, 0, INP);
  VTASynchronize(cmd, 1u << 31);
  say(buffers);
  stay();
  return 0;
}

int32_t leaves_a_token_and_speaks(void* const* buffers, const int64_t* offsets) {
  void* cmd = VTATLSCommandHandle();
  dense(buffers, offsets);
  VTADepPush(cmd, COMPUTE, LOAD);
  VTASynchronize(cmd, 1u << 31);
  say(buffers);
  stay();
  return 0;
}

int32_t speaks(void* const* buffers, const int64_t* offsets) {
  (void)offsets;
  say(buffers);
  stay();
  return 0;
}
