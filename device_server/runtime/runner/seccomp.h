// The two system-call filters of the child, as raw BPF for x86-64 and aarch64.
#ifndef TILEFARM_RUNNER_SECCOMP_H_
#define TILEFARM_RUNNER_SECCOMP_H_

namespace tilefarm::runner {

bool seccomp_available();

// Before the artifact is loaded: no sockets, programs, processes, debugging, mounts, writable
// files. Forbidden calls raise SIGSYS. Returns false when the kernel refuses the filter.
bool forbid_dangerous_calls();

// After it is loaded: only computing, memory without PROT_EXEC, and descriptors that are open
// already.
bool allow_only_computing();

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_SECCOMP_H_
