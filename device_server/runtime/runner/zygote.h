// The process that the children of one device are copies of: the VTA library is loaded and
// configured once, and a child costs a fork instead of a start. It never loads an artifact.
#ifndef TILEFARM_RUNNER_ZYGOTE_H_
#define TILEFARM_RUNNER_ZYGOTE_H_

#include <string>

#include "sandbox.h"

namespace tilefarm::runner {

// Serves configure and spawn requests until the other side of `fd` has gone; the exit status. A
// spawn request brings the new child's socket and its stderr, the socket of its accelerator, and
// the memory of both. They belong to the zygote's parent, which waits for them. The reply has their
// numbers: an accelerator of 0 is the library in the child, of less could not be made.
int be_zygote(int fd, const std::string& library, const SandboxLimits& limits, unsigned threads);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ZYGOTE_H_
