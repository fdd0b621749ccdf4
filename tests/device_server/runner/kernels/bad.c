/* Kernels that must cost one child and one typed record each. All take one OUTPUT of 64 bytes. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "vta.h"

#define KERNEL(name) int32_t name(void* const* buffers, const int64_t* offsets)
#define UNUSED() ((void)buffers, (void)offsets)

KERNEL(segfault) {
  UNUSED();
  *(volatile int*)16 = 1;
  return 0;
}

KERNEL(endless) {
  UNUSED();
  for (volatile int k = 0;; ++k) {
  }
  return 0;
}

KERNEL(aborts) {
  UNUSED();
  abort();
}

KERNEL(exits) {
  UNUSED();
  _exit(0);
}

KERNEL(returns_error) {
  UNUSED();
  return 7;
}

KERNEL(divides_by_zero) {
  volatile int zero = 0;
  UNUSED();
  raise(SIGFPE);
  return 1 / zero;
}

KERNEL(writes_beyond_its_buffer) {
  char* to = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[0]);
  (void)offsets;
  memset(to, 1, 1 << 20);
  return 0;
}

KERNEL(exhausts_memory) {
  UNUSED();
  for (;;) {
    char* block = malloc(1 << 22);
    memset(block, 1, 16);
  }
}

KERNEL(opens_a_socket) {
  UNUSED();
  return socket(AF_INET, SOCK_STREAM, 0) < 0;
}

KERNEL(opens_a_file) {
  UNUSED();
  return open("/etc/passwd", O_RDONLY) < 0;
}

KERNEL(starts_a_process) {
  UNUSED();
  return fork() < 0;
}

KERNEL(makes_code) {
  UNUSED();
  return mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
         MAP_FAILED;
}

KERNEL(signals_another_process) {
  UNUSED();
  return kill(1, 0);
}

/* Whatever descriptors are open get nonsense, the connection to the parent among them. */
KERNEL(writes_nonsense_everywhere) {
  UNUSED();
  for (int fd = 3; fd < 64; ++fd) {
    if (write(fd, "\x04\x00\x00\x00nonsense", 12) < 0) continue;
  }
  return 0;
}

KERNEL(claims_a_huge_reply) {
  UNUSED();
  for (int fd = 3; fd < 64; ++fd) {
    if (write(fd, "\xff\xff\xff\xff", 4) < 0) continue;
  }
  return 0;
}

/* Different every time it is called. */
KERNEL(counts_its_calls) {
  static char calls;
  char* to = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[0]);
  (void)offsets;
  memset(to, ++calls, 64);
  return 0;
}

KERNEL(works_once) {
  static int done;
  char* to = VTABufferCPUPtr(VTATLSCommandHandle(), buffers[0]);
  (void)offsets;
  if (!done) memset(to, 7, 64);
  done = 1;
  return 0;
}

KERNEL(takes_a_tenth_of_a_second) {
  struct timespec tenth = {0, 100000000};
  UNUSED();
  nanosleep(&tenth, 0);
  return 0;
}

static int has_part_run;

KERNEL(a_part) {
  UNUSED();
  has_part_run = 1;
  return 0;
}

/* As on a machine that was busy until its parts were timed. */
KERNEL(is_slow_until_its_part_ran) {
  struct timespec hundredth = {0, 10000000}, tenth = {0, 100000000};
  UNUSED();
  nanosleep(has_part_run ? &hundredth : &tenth, 0);
  return 0;
}

KERNEL(exceeds_the_scratchpad) {
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTALoadBuffer2D(cmd, buffers[0], 0, 4, 1, 4, 0, 0, 0, 0, 2046, INP);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

KERNEL(exceeds_its_buffer) {
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTALoadBuffer2D(cmd, buffers[0], 0, 5, 1, 5, 0, 0, 0, 0, 0, INP);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

KERNEL(has_too_long_a_row) {
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTALoadBuffer2D(cmd, buffers[0], 0, 70000, 1, 1, 0, 0, 0, 0, 0, INP);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

KERNEL(leaves_a_token) {
  void* cmd = VTATLSCommandHandle();
  UNUSED();
  VTADepPush(cmd, COMPUTE, LOAD);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

KERNEL(does_not_synchronize) {
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTALoadBuffer2D(cmd, buffers[0], 0, 4, 1, 4, 0, 0, 0, 0, 0, INP);
  return 0;
}

KERNEL(waits_for_ever) {
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTADepPop(cmd, STORE, COMPUTE);
  VTALoadBuffer2D(cmd, buffers[0], 0, 1, 1, 1, 0, 0, 0, 0, 0, ACC);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

static int record_same_dst(void* closure) {
  (void)closure;
  VTAUopPush(0, 0, 5, 0, 0, 0, 0, 0);
  VTAUopPush(0, 0, 6, 0, 0, 0, 0, 0);
  VTAUopPush(0, 0, 5, 0, 0, 0, 0, 0);
  return 0;
}

KERNEL(reuses_an_accumulator_at_once) {
  static void* handle;
  void* cmd = VTATLSCommandHandle();
  UNUSED();
  VTAPushGEMMOp(&handle, record_same_dst, 0, 0);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}

static int record_one(void* closure) {
  (void)closure;
  VTAUopPush(0, 0, 0, 0, 0, 0, 0, 0);
  return 0;
}

/* The right answer on this simulator, but nothing keeps the product from being stored too early. */
KERNEL(stores_without_waiting) {
  static void* handle;
  void* cmd = VTATLSCommandHandle();
  (void)offsets;
  VTAPushGEMMOp(&handle, record_one, 0, 0);
  VTAStoreBuffer2D(cmd, 0, OUT, buffers[0], 0, 1, 1, 1);
  VTASynchronize(cmd, 1u << 31);
  return 0;
}
