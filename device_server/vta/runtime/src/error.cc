#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace tilefarm {

void fail(tilefarm_vta_status status, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  throw Fault{status, text};
}

void ErrorState::record(const Fault& fault) {
  if (!ok()) return;
  status_ = fault.status;
  why_ = fault.why;
}

void ErrorState::clear() {
  status_ = TILEFARM_VTA_OK;
  why_.clear();
}

}  // namespace tilefarm
