/* Kernels that share their work with the threads of whoever calls. */
#include <stdint.h>

void *VTATLSCommandHandle(void);
void *VTABufferCPUPtr(void *command, void *buffer);

typedef void (*part_function)(void *state, int64_t number, int64_t parts);
typedef void (*share_function)(part_function part, void *state);

static share_function share;

void tilefarm_share_work(share_function given) { share = given; }

static void call(part_function part, void *state) {
  if (share != 0) {
    share(part, state);
  } else {
    part(state, 0, 1);
  }
}

static long system_call(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long answer;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return answer;
#else
  return -number - a - b - c;
#endif
}

/* The thread that calls. It leaves the part that ends everything to a helper, and waits for it. */
static void *caller;

static int is_left_to_a_helper(void) {
  while (__builtin_thread_pointer() == caller) {
    volatile int look = 0;
    (void)look;
  }
  return 1;
}

/* Byte 0 is the number of parts; each part writes its own number behind it. */
static void note(void *state, int64_t number, int64_t parts) {
  uint8_t *out = state;
  if (number == 0) out[0] = (uint8_t)parts;
  out[1 + number] = (uint8_t)number;
}

int32_t numbers(void *const *buffers, const int64_t *offsets) {
  call(note, (uint8_t *)VTABufferCPUPtr(VTATLSCommandHandle(), buffers[0]) + offsets[0]);
  return 0;
}

static void store_to_nowhere(void *state, int64_t number, int64_t parts) {
  (void)state, (void)number, (void)parts;
  if (is_left_to_a_helper()) *(volatile int *)8 = 1;
}

static int use_up_the_stack(volatile char *below, int more) {
  volatile char here[4096];
  here[0] = *below;
  if (more) *below = (char)use_up_the_stack(here, more + 2);
  return here[0];
}

static void recurse(void *state, int64_t number, int64_t parts) {
  (void)state, (void)number, (void)parts;
  char bottom = 0;
  if (is_left_to_a_helper()) use_up_the_stack(&bottom, 1);
}

static void become_two(void *state, int64_t number, int64_t parts) {
  (void)state, (void)number, (void)parts;
  if (is_left_to_a_helper()) system_call(57, 0, 0, 0);
}

static void begin_a_thread(void *state, int64_t number, int64_t parts) {
  (void)state, (void)number, (void)parts;
  if (is_left_to_a_helper()) system_call(56, 0x10f00, 0, 0);
}

static void open_a_file(void *state, int64_t number, int64_t parts) {
  (void)state, (void)number, (void)parts;
  if (is_left_to_a_helper()) system_call(2, (long)"/etc/passwd", 0, 0);
}

#define KERNEL(name, part)                                         \
  int32_t name(void *const *buffers, const int64_t *offsets) {     \
    (void)buffers, (void)offsets;                                  \
    caller = __builtin_thread_pointer();                           \
    call(part, 0);                                                 \
    return 0;                                                      \
  }

KERNEL(stray, store_to_nowhere)
KERNEL(deep, recurse)
KERNEL(fork_, become_two)
KERNEL(clone_, begin_a_thread)
KERNEL(open_, open_a_file)
