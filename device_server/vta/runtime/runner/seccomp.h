// The two system-call filters of a child, and that of its accelerator, installed.
#ifndef TILEFARM_RUNNER_SECCOMP_H_
#define TILEFARM_RUNNER_SECCOMP_H_

#include <vector>

namespace tilefarm::runner {

// Whether there are rules for this processor, and this kernel takes them.
bool seccomp_available();

// Before the artifact is loaded, when all threads are there. Forbidden calls raise SIGSYS. The
// drivers of `devices`, which are open, may be asked for anything. Returns false when the kernel
// refuses the filter.
bool allow_only_loading(const std::vector<int>& devices);

// After it is loaded.
bool allow_only_computing(const std::vector<int>& devices);

// In a process that plays an accelerator.
bool allow_only_serving();

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_SECCOMP_H_
