/* An artifact that misbehaves while it is loaded. */
#include <sys/socket.h>

#include "vta.h"

__attribute__((constructor)) static void on_load(void) { socket(AF_INET, SOCK_STREAM, 0); }

int32_t entry(void* const* buffers, const int64_t* offsets) {
  (void)buffers;
  (void)offsets;
  return 0;
}
