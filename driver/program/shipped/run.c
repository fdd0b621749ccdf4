/* Runs this program: cc run.c -ldl -o run && ./run VTA_LIBRARY INPUT... OUTPUT...
 * in this folder. A file holds the float32 values of one tensor for any number of runs, in the
 * order and the shapes that README.txt lists. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUTS = @INPUTS@, OUTPUTS = @OUTPUTS@, FIRST = 2, BUFFERS = FIRST + INPUTS + OUTPUTS };
static const size_t nbytes[BUFFERS] = {@NBYTES@}; /* arena, weights, inputs, outputs */
static const int32_t simulator[] = {@SIMULATOR@}; /* which accelerator a simulator is to be */

static void *need(void *found, const char *what) {
  if (found != NULL) return found;
  const char *why = dlerror();
  fprintf(stderr, "%s: %s\n", what, why != NULL ? why : "cannot be opened");
  exit(1);
}

int main(int argc, char **argv) {
  static const int64_t offsets[BUFFERS];
  void *device[BUFFERS], *host[BUFFERS];
  FILE *file[BUFFERS];
  if (argc != BUFFERS) return fprintf(stderr, "usage: run VTA_LIBRARY INPUT... OUTPUT...\n"), 2;
  void *vta = need(dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL), argv[1]); /* the program calls it */
  int (*configure)(const int32_t *) = dlsym(vta, "tilefarm_vta_configure");
  int (*last_error)(char *, size_t) = dlsym(vta, "tilefarm_vta_last_error");
  if (configure != NULL) configure(simulator);
  void *(*alloc)(size_t) = need(dlsym(vta, "VTABufferAlloc"), "VTABufferAlloc");
  void (*copy)(const void *, size_t, void *, size_t, size_t, int) = /* 1: to the device, 2: from */
      need(dlsym(vta, "VTABufferCopy"), "VTABufferCopy");
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
