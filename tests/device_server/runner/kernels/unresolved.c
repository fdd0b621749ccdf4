/* An artifact that needs a function nobody has. */
#include "vta.h"

extern int32_t VTANotThere(void);

int32_t entry(void* const* buffers, const int64_t* offsets) {
  (void)buffers;
  (void)offsets;
  return VTANotThere();
}
