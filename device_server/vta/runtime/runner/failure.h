// Why a request could not be served: a status that the other side knows, and words.
#ifndef TILEFARM_RUNNER_FAILURE_H_
#define TILEFARM_RUNNER_FAILURE_H_

#include <cstdint>
#include <string>

namespace tilefarm::runner {

// The numbers are part of the protocol (device_server/runner/frames.py).
enum class FailureKind : uint8_t {
  kLoad = 1,      // the artifact or the library cannot be loaded, or lacks something
  kRuntime = 2,   // the VTA runtime refused, or the entry returned an error
  kMemory = 3,    // no room
  kUnstable = 4,  // equal inputs gave different outputs
  kProtocol = 5,  // the request, the library or the machine is at fault, not the artifact
  kUntimed = 6    // it ran well, but the host cannot tell how long it takes
};

struct Failure {
  FailureKind kind;
  std::string why;
};

[[noreturn]] inline void fail(FailureKind kind, const std::string& why) {
  throw Failure{kind, why};
}

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_FAILURE_H_
