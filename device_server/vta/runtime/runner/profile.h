// What each call of a program takes, made and waited for one after the other.
#ifndef TILEFARM_RUNNER_PROFILE_H_
#define TILEFARM_RUNNER_PROFILE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "session.h"

namespace tilefarm::runner {

struct CallTime {
  uint64_t cycles = 0;              // where the library counts
  std::optional<WallTime> seconds;  // where a precision is wanted
};

// The entries that `request.profile` names, in order, on the inputs of the last sample; together
// they must give its outputs. A call may overwrite what it reads, so none is repeated by itself:
// where a precision is wanted all of them are, for its seconds. `whole`, what the request's own
// entry takes, is then told anew: it takes turns with its parts, so that a moment at which the
// machine is slow is the same for both.
std::vector<CallTime> profile(Session& session, const Artifact& artifact, const Request& request,
                              std::optional<WallTime>& whole, VtaLibrary& library, Host& host);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_PROFILE_H_
