// The two system-call filters of the child, installed.
#ifndef TILEFARM_RUNNER_SECCOMP_H_
#define TILEFARM_RUNNER_SECCOMP_H_

namespace tilefarm::runner {

// Whether there are rules for this processor, and this kernel takes them.
bool seccomp_available();

// Before the artifact is loaded. Forbidden calls raise SIGSYS. Returns false when the kernel
// refuses the filter.
bool forbid_dangerous_calls();

// After it is loaded.
bool allow_only_computing();

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_SECCOMP_H_
