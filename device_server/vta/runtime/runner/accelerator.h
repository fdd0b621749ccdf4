// The process that plays the accelerator for one child after the other: it never maps an artifact,
// so that what it counts is out of a kernel's reach.
#ifndef TILEFARM_RUNNER_ACCELERATOR_H_
#define TILEFARM_RUNNER_ACCELERATOR_H_

#include "vta_library.h"

namespace tilefarm::runner {

// Until the server has gone: obeys the child of the server's last serve request, which brings the
// other end of the child's socket and the memory of both, and tells what was done for it whenever
// the server asks. It begins with nothing of the child before.
[[noreturn]] void be_accelerator(int server, VtaLibrary& library);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ACCELERATOR_H_
