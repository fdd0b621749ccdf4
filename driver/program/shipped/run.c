/* Runs this program: cc run.c -ldl -lpthread -o run && ./run @USAGE@INPUT... OUTPUT...
 * in this folder. A file holds the float32 values of one tensor for any number of runs, in the
 * order and the shapes that README.txt lists. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
  fprintf(stderr, "%s: %s\n", what, why != NULL ? why : strerror(errno));
  exit(1);
}

/* A function that there may be; dlerror() forgets that there is none. */
static void *may_find(void *code, const char *name) {
  void *found = dlsym(code, name);
  dlerror();
  return found;
}

/* A file of this program as it was written: by its size and its Adler-32. */
static void *need_file(const char *path, size_t size, uint32_t sum) {
  uint32_t low = 1, high = 0;
  unsigned char *content = need(malloc(size + 1), "memory");
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    fprintf(stderr, "  try: run it in the folder of the program, and copy all of that\n");
    exit(1);
  }
  const size_t got = fread(content, 1, size + 1, file);
  fclose(file);
  for (size_t i = 0; i < got; ++i) low = (low + content[i]) % 65521, high = (high + low) % 65521;
  if (got == size && (high << 16 | low) == sum) return content;
  fprintf(stderr, "%s: damaged, or of another program\n", path);
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

static void start_threads(void *code, long threads) {
  cpu_set_t cores;
  pthread_t thread;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0 && threads > CPU_COUNT(&cores)) {
    fprintf(stderr, "%ld threads, but there are %d cores\n", threads, CPU_COUNT(&cores));
    fprintf(stderr, "  try: --threads %d\n", CPU_COUNT(&cores));
    exit(2);
  }
  open_pool = may_find(code, "tilefarm_open_pool");
  if (open_pool == NULL) return; /* it has no kernel that could be shared */
  help = dlsym(code, "tilefarm_help"), close_pool = dlsym(code, "tilefarm_close_pool");
  for (long k = 1; k < threads; ++k) {
    errno = pthread_create(&thread, NULL, helper, NULL);
    if (errno != 0) need(NULL, "a thread");
  }
}

static int32_t run(int32_t (*entry)(void *const *, const int64_t *), void *const *buffers, long threads) {
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

static void *plain_alloc(size_t size) { return aligned_alloc(4096, (size / 4096 + 1) * 4096); }

static void plain_copy(const void *from, size_t at, void *to, size_t start, size_t size, int kind) {
  (void)kind;
  memcpy((char *)to + start, (const char *)from + at, size);
}

static void open_library(const char *path) {
  void *vta = need(dlopen(path, RTLD_NOW | RTLD_GLOBAL), path); /* the program calls it */
  int (*configure)(const int32_t *) = may_find(vta, "tilefarm_vta_configure");
  last_error = may_find(vta, "tilefarm_vta_last_error");
  if (configure != NULL) configure(simulator);
  alloc = need(dlsym(vta, "VTABufferAlloc"), "VTABufferAlloc");
  copy = need(dlsym(vta, "VTABufferCopy"), "VTABufferCopy");
}

static void *device[BUFFERS], *host[BUFFERS];
static FILE *file[BUFFERS];

/* Reads what one run takes: 1, 0 at the end of all inputs, -1 where one ends before. */
static int next_inputs(char **argv) {
  int ended = 0;
  for (int i = FIRST; i < FIRST + INPUTS; ++i) {
    const size_t got = fread(host[i], 1, nbytes[i], file[i]);
    if (ferror(file[i])) return perror(argv[i]), -1;
    ended += got == 0;
    if (got != nbytes[i] && ended != i - FIRST + 1)
      return fprintf(stderr, "%s ends within a run\n", argv[i]), -1;
    copy(host[i], 0, device[i], 0, nbytes[i], 1);
  }
  if (ended != 0 && ended != INPUTS)
    return fprintf(stderr, "%s ends before the other inputs\n", argv[FIRST]), -1;
  return ended == 0;
}

/* Ends here where an output would take the place of a file that is read, or of another output. */
static void need_own_file(char **argv, int output) {
  struct stat own, other;
  if (stat(argv[output], &own) != 0 || !S_ISREG(own.st_mode)) return;
  for (int i = FIRST; i < output; ++i) {
    if (fstat(fileno(file[i]), &other) != 0) continue;
    if (own.st_dev != other.st_dev || own.st_ino != other.st_ino) continue;
    fprintf(stderr, "%s: is %s, which would be lost\n", argv[output], argv[i]);
    fprintf(stderr, "  try: a file of its own for each tensor\n");
    exit(2);
  }
}

int main(int argc, char **argv) {
  long threads = THREADS;
  if (!LIBRARIES && argc > 2 && strcmp(argv[1], "--threads") == 0) {
    char *end;
    threads = strtol(argv[2], &end, 10);
    if (*end != '\0') threads = 0;
    argv += 2, argc -= 2;
  }
  if (argc != 1 + LIBRARIES + INPUTS + OUTPUTS || threads < 1)
    return fprintf(stderr, "usage: run @USAGE@INPUT... OUTPUT...\n"), 2;
  need_processor();
  alloc = plain_alloc, copy = plain_copy;
  if (LIBRARIES) open_library(argv[1]);
  argv += LIBRARIES - 1; /* argv[FIRST] is the first file */
  free(need_file("./@CODE@", @CODE_SIZE@, @CODE_SUM@));
  host[1] = need_file("@WEIGHTS@", nbytes[1], @WEIGHTS_SUM@);
  void *code = need(dlopen("./@CODE@", RTLD_NOW), "./@CODE@");
  int32_t (*entry)(void *const *, const int64_t *) = need(dlsym(code, "@ENTRY@"), "@ENTRY@");
  start_threads(code, threads);
  for (int i = 0; i < BUFFERS; ++i) {
    device[i] = need(alloc(nbytes[i]), "a buffer");
    if (i < FIRST) continue;
    host[i] = need(malloc(nbytes[i]), "memory");
    if (i >= FIRST + INPUTS) need_own_file(argv, i);
    file[i] = need(fopen(argv[i], i < FIRST + INPUTS ? "rb" : "wb"), argv[i]);
  }
  copy(host[1], 0, device[1], 0, nbytes[1], 1);
  int more, samples = 0;
  for (; (more = next_inputs(argv)) > 0; samples = 1) {
    if (run(entry, device, threads) != 0 || (last_error != NULL && last_error(NULL, 0) != 0))
      return fprintf(stderr, "the program failed\n"), 1;
    for (int i = FIRST + INPUTS; i < BUFFERS; ++i) {
      copy(device[i], 0, host[i], 0, nbytes[i], 2);
      if (fwrite(host[i], 1, nbytes[i], file[i]) != nbytes[i]) return perror(argv[i]), 1;
    }
  }
  for (int i = FIRST + INPUTS; i < BUFFERS; ++i) { /* a full disk may only tell now */
    if (fclose(file[i]) != 0) return perror(argv[i]), 1;
  }
  if (more == 0 && !samples) return fprintf(stderr, "%s has no samples\n", argv[FIRST]), 1;
  return more == 0 ? 0 : 1;
}
