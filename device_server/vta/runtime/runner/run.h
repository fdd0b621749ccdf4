// One run request: fill buffers, call the entry for every sample, then for time, and read the
// outputs.
#ifndef TILEFARM_RUNNER_RUN_H_
#define TILEFARM_RUNNER_RUN_H_

#include "artifact.h"
#include "frames.h"
#include "vta_library.h"

namespace tilefarm::runner {

// Takes the request's fields from `frame`; outputs go into its last descriptor, all samples of the
// first output, then of the next. Returns the reply; throws Failure.
Reply run(Frame& frame, VtaLibrary& library, const Artifact& artifact);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_RUN_H_
