// Failures inside the library: thrown as Fault, kept by ErrorState at the C border.
#ifndef TILEFARM_ERROR_H_
#define TILEFARM_ERROR_H_

#include <string>

#include "tilefarm_vta.h"

namespace tilefarm {

struct Fault {
  tilefarm_vta_status status;
  std::string why;
};

// Throws a Fault with a formatted reason.
[[noreturn]] void fail(tilefarm_vta_status status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// The first failure since it was cleared; later ones are its consequences and are dropped.
class ErrorState {
 public:
  bool ok() const { return status_ == TILEFARM_VTA_OK; }
  tilefarm_vta_status status() const { return status_; }
  const std::string& why() const { return why_; }
  void record(const Fault& fault);
  void clear();

 private:
  tilefarm_vta_status status_ = TILEFARM_VTA_OK;
  std::string why_;
};

}  // namespace tilefarm

#endif  // TILEFARM_ERROR_H_
