// The process that the children of one device are copies of: the VTA library is loaded and
// configured once, and a child costs a fork instead of a start. It never loads an artifact.
#ifndef TILEFARM_RUNNER_ZYGOTE_H_
#define TILEFARM_RUNNER_ZYGOTE_H_

#include <string>

#include "sandbox.h"

namespace tilefarm::runner {

// Serves configure and spawn requests until the other side of `fd` has gone; the exit status. A
// spawn request for an accelerator brings its socket; one for a child brings the child's socket and
// its stderr, and where its accelerator is apart, the socket to that and the memory of both. The
// new process belongs to the zygote's parent, which waits for it; the reply has its number.
int be_zygote(int fd, const std::string& library, const SandboxLimits& limits, unsigned threads);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_ZYGOTE_H_
