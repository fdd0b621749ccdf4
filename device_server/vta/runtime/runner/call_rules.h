// Which system calls a child may make, at each stage.
#ifndef TILEFARM_RUNNER_CALL_RULES_H_
#define TILEFARM_RUNNER_CALL_RULES_H_

#include <sys/types.h>

#include <vector>

#include "call_filter.h"

namespace tilefarm::runner {

// Other processors number their calls in other ways; there are no rules for them.
bool knows_calls();

// While an artifact is loaded: what computing takes, files opened for reading, and memory mapped
// from them to be executed. No other memory becomes executable.
FilterProgram only_loading(pid_t self, const std::vector<int>& devices);

// Memory without PROT_EXEC, descriptors that are open already, time, threads that wait for each
// other, signals of the process `self` to itself, and what the drivers of open `devices` are asked.
FilterProgram only_computing(pid_t self, const std::vector<int>& devices);

// The same without devices, and waiting for several descriptors.
FilterProgram only_serving(pid_t self);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_CALL_RULES_H_
