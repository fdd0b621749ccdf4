// Threads that share the iterations of kernels made for it: see the artifacts' tilefarm_share_work.
#ifndef TILEFARM_RUNNER_HELPERS_H_
#define TILEFARM_RUNNER_HELPERS_H_

#include <cstdint>

namespace tilefarm::runner {

using Part = void (*)(void* state, int64_t number, int64_t parts);
using Share = void (*)(Part part, void* state);

// Starts `count` threads next to the caller's; once, and for the life of the process. They have the
// rights that the caller has at this time.
void start_helpers(unsigned count);

// What kernels are given; null when there are no helpers.
Share share_work();

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_HELPERS_H_
