/* Loads a kernel and calls it, next to a VTA runtime that writes down what it is asked.
 *
 * usage: loader KERNEL ENTRY LOG FILE...
 *
 * Files are the entry's buffers: read before, written after. Handles are addresses, so a buffer is
 * its own memory; in the log a pointer to a buffer is the buffer's number.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 16

static FILE *log_file;
static void *buffers[MOST];
static int count;

static int number_of(const void *handle) {
  for (int i = 0; i < count; ++i) {
    if (buffers[i] == handle) return i;
  }
  return -1;
}

void *VTATLSCommandHandle(void) { return &log_file; }

void *VTABufferCPUPtr(void *command, void *buffer) {
  (void)command;
  return buffer;
}

void VTALoadBuffer2D(void *command, void *from, uint32_t offset, uint32_t x, uint32_t y,
                     uint32_t stride, uint32_t left, uint32_t top, uint32_t right, uint32_t bottom,
                     uint32_t index, uint32_t memory) {
  (void)command;
  fprintf(log_file, "load %d %u %u %u %u %u %u %u %u %u %u\n", number_of(from), offset, x, y,
          stride, left, top, right, bottom, index, memory);
}

void VTAStoreBuffer2D(void *command, uint32_t index, uint32_t memory, void *to, uint32_t offset,
                      uint32_t x, uint32_t y, uint32_t stride) {
  (void)command;
  fprintf(log_file, "store %u %u %d %u %u %u %u\n", index, memory, number_of(to), offset, x, y,
          stride);
}

void VTAUopPush(uint32_t mode, uint32_t reset, uint32_t dst, uint32_t src, uint32_t wgt,
                uint32_t opcode, uint32_t use_imm, int32_t imm) {
  fprintf(log_file, "uop %u %u %u %u %u %u %u %d\n", mode, reset, dst, src, wgt, opcode, use_imm,
          imm);
}

void VTAUopLoopBegin(uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt) {
  fprintf(log_file, "loop %u %u %u %u\n", extent, dst, src, wgt);
}

void VTAUopLoopEnd(void) { fprintf(log_file, "end\n"); }

static int recorded(const char *what, int (*record)(void *), void *signature, int nbytes) {
  fprintf(log_file, "%s %d\n", what, nbytes);
  return record(signature);
}

int VTAPushGEMMOp(void **handle, int (*record)(void *), void *signature, int nbytes) {
  (void)handle;
  return recorded("gemm", record, signature, nbytes);
}

int VTAPushALUOp(void **handle, int (*record)(void *), void *signature, int nbytes) {
  (void)handle;
  return recorded("alu", record, signature, nbytes);
}

int VTADepPush(void *command, int from, int to) {
  (void)command;
  fprintf(log_file, "push %d %d\n", from, to);
  return 0;
}

int VTADepPop(void *command, int from, int to) {
  (void)command;
  fprintf(log_file, "pop %d %d\n", from, to);
  return 0;
}

void VTASynchronize(void *command, uint32_t cycles) {
  (void)command;
  fprintf(log_file, "wait %u\n", cycles);
}

static long nbytes[MOST];

static void take(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || count == MOST) exit(3);
  fseek(file, 0, SEEK_END);
  nbytes[count] = ftell(file);
  rewind(file);
  buffers[count] = aligned_alloc(64, (size_t)(nbytes[count] + 63) / 64 * 64);
  if (fread(buffers[count], 1, (size_t)nbytes[count], file) != (size_t)nbytes[count]) exit(3);
  fclose(file);
  ++count;
}

static void give(int i, const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(buffers[i], 1, (size_t)nbytes[i], file) != (size_t)nbytes[i]) exit(3);
  fclose(file);
}

int main(int argc, char **argv) {
  static int64_t offsets[MOST];
  if (argc < 4) return 2;
  log_file = fopen(argv[3], "w");
  void *kernel = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (log_file == NULL || kernel == NULL) {
    fprintf(stderr, "%s\n", kernel == NULL ? dlerror() : "no log");
    return 4;
  }
  int32_t (*entry)(void *const *, const int64_t *) =
      (int32_t(*)(void *const *, const int64_t *))dlsym(kernel, argv[2]);
  if (entry == NULL) return 5;
  for (int i = 4; i < argc; ++i) take(argv[i]);
  const int32_t answer = entry(buffers, offsets);
  for (int i = 4; i < argc; ++i) give(i - 4, argv[i]);
  fclose(log_file);
  return answer == 0 ? 0 : 6;
}
