/* What a C library asks of the system for a kernel that keeps to computing: memory, time, signals
   to itself, words on its standard output. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "vta.h"

enum { BLOCK = 1 << 20, MANY = 64, SECOND_NANOS = 1000000000, SOON = 1000000 };

static volatile sig_atomic_t heard;

static void hear(int signal) { heard += signal != 0; }

static void hear_more(int signal, siginfo_t* info, void* context) {
  heard += signal == info->si_signo && context != 0;
}

static int uses_memory(void) {
  char* blocks[MANY];
  for (int k = 0; k < MANY; ++k) memset(blocks[k] = malloc(BLOCK >> (k % 8)), k, 1 << 12);
  blocks[0] = realloc(blocks[0], 8 * BLOCK);
  blocks[0] = realloc(blocks[0], 64 * BLOCK);
  const int kept = blocks[0][4095] == 0;
  for (int k = 0; k < MANY; ++k) free(blocks[k]);
  return kept;
}

static int looks_at_the_time(void) {
  struct timespec now;
  struct timeval day;
  struct rusage used;
  return clock_gettime(CLOCK_MONOTONIC, &now) == 0 && gettimeofday(&day, 0) == 0 &&
         clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0 && time(0) != 0 && clock() != -1 &&
         getrusage(RUSAGE_SELF, &used) == 0;
}

static int waits(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  const struct timespec little = {0, SOON};
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += SOON;
  if (end.tv_nsec >= SECOND_NANOS) end.tv_sec += 1, end.tv_nsec -= SECOND_NANOS;
  pthread_mutex_lock(&mutex);
  const int ended = pthread_cond_timedwait(&never, &mutex, &end);
  pthread_mutex_unlock(&mutex);
  return ended != 0 && usleep(1) == 0 && nanosleep(&little, 0) == 0 && sched_yield() == 0 &&
         clock_nanosleep(CLOCK_MONOTONIC, 0, &little, 0) == 0;
}

static int signals_itself(void) {
  struct sigaction plain = {.sa_handler = hear};
  struct sigaction full = {.sa_sigaction = hear_more, .sa_flags = SA_SIGINFO};
  heard = 0;
  sigaction(SIGUSR1, &plain, 0);
  sigaction(SIGUSR2, &full, 0);
  return raise(SIGUSR1) == 0 && raise(SIGUSR2) == 0 && heard == 2;
}

/* Whatever is refused of this, a kernel goes on. */
static int speaks(void) {
  static char into[16];
  struct stat file;
  struct iovec part = {into, sizeof into};
  const long unused = fstat(STDIN_FILENO, &file) + lseek(STDIN_FILENO, 0, SEEK_CUR) +
                      pread(STDIN_FILENO, into, 1, 0) + readv(STDIN_FILENO, &part, 1) +
                      isatty(STDOUT_FILENO) + getrandom(into, sizeof into, 0);
  return unused >= -8 && printf("%d\n", (int)getpid()) > 0 && fflush(stdout) == 0 &&
         fprintf(stderr, "words") > 0;
}

int32_t everyday(void* const* buffers, const int64_t* offsets) {
  (void)buffers, (void)offsets;
  if (!uses_memory()) return 1;
  if (!looks_at_the_time()) return 2;
  if (!waits()) return 3;
  if (!signals_itself()) return 4;
  return speaks() ? 0 : 5;
}
