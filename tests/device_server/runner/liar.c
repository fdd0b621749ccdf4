/* Counters for a library that has none: what they say is decided when this is compiled. */
#include <stdint.h>
#include <string.h>

#include "tilefarm_vta.h"

enum { ZEROS, CONSTANTS, CRASH };

TILEFARM_VTA_API void tilefarm_vta_clear_counters(void) {}

TILEFARM_VTA_API void tilefarm_vta_read_counters(tilefarm_vta_counters* out) {
  memset(out, LIE == CONSTANTS ? 0x5a : 0, sizeof *out);
  if (LIE == CRASH) *(volatile int*)16 = 1;
}
