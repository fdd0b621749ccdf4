// Landlock, where the kernel has it: no file may be opened but the artifact, no TCP, no foreign
// signals.
#ifndef TILEFARM_RUNNER_LANDLOCK_H_
#define TILEFARM_RUNNER_LANDLOCK_H_

#include <string>

namespace tilefarm::runner {

int landlock_abi();  // 0 when the kernel has none

// Returns false when the kernel refuses; true without effect when it has no Landlock.
bool allow_reading_only(const std::string& path);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_LANDLOCK_H_
