// The process that plays the accelerator for one child: it never maps the artifact, so that what it
// counts is out of a kernel's reach.
#ifndef TILEFARM_RUNNER_ACCELERATOR_H_
#define TILEFARM_RUNNER_ACCELERATOR_H_

#include "vta_library.h"

namespace tilefarm::runner {

// Obeys what the child asks on `child`, and tells `server` what was done whenever that asks, until
// the server has gone.
[[noreturn]] void be_accelerator(int server, int child, VtaLibrary& library);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ACCELERATOR_H_
