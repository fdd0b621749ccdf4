// What the child may not do, in the order in which it gives up its rights.
#ifndef TILEFARM_RUNNER_SANDBOX_H_
#define TILEFARM_RUNNER_SANDBOX_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tilefarm::runner {

constexpr int kOpenFiles = 256;

struct SandboxLimits {
  uint64_t memory_nbytes = 0;  // of address space
  uint64_t file_nbytes = 0;    // written to any one file, its own stderr included
  uint64_t load_seconds = 0;   // of processor time, until the parent gives more for a run
  uint64_t run_seconds = 0;    // of processor time, whatever the parent gives
};

// Dies with the thread that is the parent; now, if it is not `parent` any more.
void die_with(pid_t parent);

// Gains no rights, has limited resources and no capabilities; its children neither.
void limit_resources(const SandboxLimits& limits);

// How long this process may compute, its children apart: until it has loaded, or in all.
void limit_processor_time(const SandboxLimits& limits);
void limit_serving_time(const SandboxLimits& limits);

// Right before, and right after, the artifact is loaded. kProtocol failure when a part that
// `sandbox_level` promised is refused. `last_threads` starts what threads the child will ever have;
// `devices` are what a board's library has opened, see VtaLibrary.
void enter_first_stage(const std::string& artifact_path, const std::vector<int>& devices,
                       const std::function<void()>& last_threads);
void enter_second_stage(const std::vector<int>& devices);

// The same for who plays an accelerator and loads nothing.
void enter_serving_stage();

// What this build and this kernel can do, in words.
std::string sandbox_level();

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_SANDBOX_H_
