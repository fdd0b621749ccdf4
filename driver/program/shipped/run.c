/* Runs this program: cc run.c -ldl -o run && ./run @LIBRARY@INPUT... OUTPUT...
 * in this folder. A file holds the float32 values of one tensor for any number of runs, in the
 * order and the shapes that README.txt lists. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = @INPUTS@, OUTPUTS = @OUTPUTS@, FIRST = 2, BUFFERS = FIRST + INPUTS + OUTPUTS };
enum { LIBRARIES = @LIBRARIES@ }; /* to be named: none for a processor alone */
static const size_t nbytes[BUFFERS] = {@NBYTES@}; /* arena, weights, inputs, outputs */
static const int32_t simulator[] = {@SIMULATOR@}; /* which accelerator a simulator is to be */

static void *need(void *found, const char *what) {
  if (found != NULL) return found;
  const char *why = dlerror();
  fprintf(stderr, "%s: %s\n", what, why != NULL ? why : "cannot be opened");
  exit(1);
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
  static const int64_t offsets[BUFFERS];
  void *device[BUFFERS], *host[BUFFERS];
  FILE *file[BUFFERS];
  if (argc != 1 + LIBRARIES + INPUTS + OUTPUTS)
    return fprintf(stderr, "usage: run @LIBRARY@INPUT... OUTPUT...\n"), 2;
  alloc = plain_alloc, copy = plain_copy;
  if (LIBRARIES) open_library(argv[1]);
  argv += LIBRARIES - 1; /* argv[FIRST] is the first file */
  void *code = need(dlopen("./@CODE@", RTLD_NOW), "./@CODE@");
  int32_t (*entry)(void *const *, const int64_t *) = need(dlsym(code, "@ENTRY@"), "@ENTRY@");
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
    if (entry(device, offsets) != 0 || (last_error != NULL && last_error(NULL, 0) != 0))
      return fprintf(stderr, "the program failed\n"), 1;
    for (int i = FIRST + INPUTS; i < BUFFERS; ++i) {
      copy(device[i], 0, host[i], 0, nbytes[i], 2);
      if (fwrite(host[i], 1, nbytes[i], file[i]) != nbytes[i]) return perror(argv[i]), 1;
    }
  }
}
