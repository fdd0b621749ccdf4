#include "seccomp.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "call_rules.h"

namespace tilefarm::runner {
namespace {

bool install(FilterProgram code) {
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

}  // namespace

bool seccomp_available() {
  uint32_t action = SECCOMP_RET_TRAP;
  return knows_calls() && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool allow_only_loading(const std::vector<int>& devices) {
  return install(only_loading(getpid(), devices));
}

bool allow_only_computing(const std::vector<int>& devices) {
  return install(only_computing(getpid(), devices));
}

bool allow_only_serving() { return install(only_serving(getpid())); }

}  // namespace tilefarm::runner
