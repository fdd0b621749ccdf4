/* Runs this program: cc run.c -ldl -lpthread -o run && ./run @USAGE@INPUT... OUTPUT...
 * in this folder. A file holds the float32 values of one tensor for any number of runs, in the
 * order and the shapes that README.txt lists. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = @INPUTS@, OUTPUTS = @OUTPUTS@, FIRST = 2, BUFFERS = FIRST + INPUTS + OUTPUTS };
enum { LIBRARIES = @LIBRARIES@ }; /* to be named: none for a processor alone */
static const size_t nbytes[BUFFERS] = {@NBYTES@}; /* arena, weights, inputs, outputs */
static const int32_t simulator[] = {@SIMULATOR@}; /* which accelerator a simulator is to be */
static const char needed[] = "@NEEDED@"; /* of the processor, in the words of /proc/cpuinfo */
enum { THREADS = @THREADS@ }; /* that it was tuned for */

#if !@ARCHITECTURE@
#error "@CODE@ is for @PROCESSOR@: tune the network for this machine's processor"
#endif

static void *need(void *found, const char *what) {
  if (found != NULL) return found;
  const char *why = dlerror();
  fprintf(stderr, "%s: %s\n", what, why != NULL ? why : "cannot be opened");
  exit(1);
}

/* Ends here where the program would end with an illegal instruction. What cannot be read is not asked. */
static void need_processor(void) {
  static char line[1 << 15];
  FILE *file = fopen("/proc/cpuinfo", "r");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
    line[strcspn(line, "\n")] = ' ';
    for (const char *word = needed, *end; (end = strchr(word, ' ')) != NULL; word = end + 1) {
      char wanted[64];
      const int length = end - word;
      snprintf(wanted, sizeof wanted, " %.*s ", length, word);
      if (strstr(line, wanted) != NULL) continue;
      fprintf(stderr, "@CODE@ needs a processor with %.*s\n", length, word);
      fprintf(stderr, "  try: tune for --target cpu here\n");
      exit(1);
    }
    break;
  }
  fclose(file);
}

/* Threads beside this one: they sleep between runs, and share the parallel kernels of one. */
static void (*open_pool)(int64_t), (*help)(void), (*close_pool)(void);
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static unsigned runs;

static void *helper(void *unused) {
  for (unsigned seen = 0;;) {
    pthread_mutex_lock(&mutex);
    while (seen == runs) pthread_cond_wait(&begun, &mutex);
    seen = runs;
    pthread_mutex_unlock(&mutex);
    help();
  }
  return unused;
}

static void start_threads(void *code, int threads) {
  cpu_set_t cores;
  pthread_t thread;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0 && threads > CPU_COUNT(&cores)) {
    fprintf(stderr, "%d threads, but there are %d cores\n", threads, CPU_COUNT(&cores));
    fprintf(stderr, "  try: --threads %d\n", CPU_COUNT(&cores));
    exit(2);
  }
  open_pool = dlsym(code, "tilefarm_open_pool");
  if (open_pool == NULL) return; /* it has no kernel that could be shared */
  help = dlsym(code, "tilefarm_help"), close_pool = dlsym(code, "tilefarm_close_pool");
  for (int k = 1; k < threads; ++k) {
    if (pthread_create(&thread, NULL, helper, NULL) != 0) need(NULL, "a thread");
  }
}

static int32_t run(int32_t (*entry)(void *const *, const int64_t *), void *const *buffers, int threads) {
  static const int64_t offsets[BUFFERS];
  const int is_shared = threads > 1 && open_pool != NULL;
  if (is_shared) {
    open_pool(threads);
    pthread_mutex_lock(&mutex);
    ++runs;
    pthread_cond_broadcast(&begun);
    pthread_mutex_unlock(&mutex);
  }
  const int32_t answer = entry(buffers, offsets);
  if (is_shared) close_pool();
  return answer;
}

/* Buffers of a processor alone are memory, and begin at a page. */
static void *(*alloc)(size_t);
static void (*copy)(const void *, size_t, void *, size_t, size_t, int); /* 1: to the device, 2: from */
static int (*last_error)(char *, size_t);

static void *plain_alloc(size_t size) { return aligned_alloc(4096, (size + 4095) / 4096 * 4096); }

static void plain_copy(const void *from, size_t at, void *to, size_t start, size_t size, int kind) {
  (void)kind;
  memcpy((char *)to + start, (const char *)from + at, size);
}

static void open_library(const char *path) {
  void *vta = need(dlopen(path, RTLD_NOW | RTLD_GLOBAL), path); /* the program calls it */
  int (*configure)(const int32_t *) = dlsym(vta, "tilefarm_vta_configure");
  last_error = dlsym(vta, "tilefarm_vta_last_error");
  if (configure != NULL) configure(simulator);
  alloc = need(dlsym(vta, "VTABufferAlloc"), "VTABufferAlloc");
  copy = need(dlsym(vta, "VTABufferCopy"), "VTABufferCopy");
}

int main(int argc, char **argv) {
  int threads = THREADS;
  void *device[BUFFERS], *host[BUFFERS];
  FILE *file[BUFFERS];
  if (!LIBRARIES && argc > 2 && strcmp(argv[1], "--threads") == 0) {
    threads = atoi(argv[2]);
    argv += 2, argc -= 2;
  }
  if (argc != 1 + LIBRARIES + INPUTS + OUTPUTS || threads < 1)
    return fprintf(stderr, "usage: run @USAGE@INPUT... OUTPUT...\n"), 2;
  need_processor();
  alloc = plain_alloc, copy = plain_copy;
  if (LIBRARIES) open_library(argv[1]);
  argv += LIBRARIES - 1; /* argv[FIRST] is the first file */
  void *code = need(dlopen("./@CODE@", RTLD_NOW), "./@CODE@");
  int32_t (*entry)(void *const *, const int64_t *) = need(dlsym(code, "@ENTRY@"), "@ENTRY@");
  start_threads(code, threads);
  for (int i = 0; i < BUFFERS; ++i) {
    const char *path = i < FIRST ? "@WEIGHTS@" : argv[i];
    device[i] = need(alloc(nbytes[i]), "a buffer");
    host[i] = need(malloc(nbytes[i]), "memory");
    file[i] = need(fopen(path, i < FIRST + INPUTS ? "rb" : "wb"), path);
  }
  if (fread(host[1], 1, nbytes[1], file[1]) != nbytes[1]) return fprintf(stderr, "weights\n"), 1;
  copy(host[1], 0, device[1], 0, nbytes[1], 1);
  for (;;) {
    for (int i = FIRST; i < FIRST + INPUTS; ++i) {
      const size_t got = fread(host[i], 1, nbytes[i], file[i]);
      if (got == 0 && i == FIRST) return 0;
      if (got != nbytes[i]) return fprintf(stderr, "%s ends within a run\n", argv[i]), 1;
      copy(host[i], 0, device[i], 0, nbytes[i], 1);
    }
    if (run(entry, device, threads) != 0 || (last_error != NULL && last_error(NULL, 0) != 0))
      return fprintf(stderr, "the program failed\n"), 1;
    for (int i = FIRST + INPUTS; i < BUFFERS; ++i) {
      copy(device[i], 0, host[i], 0, nbytes[i], 2);
      if (fwrite(host[i], 1, nbytes[i], file[i]) != nbytes[i]) return perror(argv[i]), 1;
    }
  }
}
