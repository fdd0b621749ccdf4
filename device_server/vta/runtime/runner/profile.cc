#include "profile.h"

#include <algorithm>
#include <string>

#include "failure.h"

namespace tilefarm::runner {
namespace {

class ProfiledCall final : public Timed {
 public:
  ProfiledCall(Session& session, Entry entry) : session_(session), entry_(entry) {}
  void prepare() override {}
  void call() override { session_.call(entry_, false); }
  void check() override {}

  std::vector<double> kept;
  uint32_t rejected = 0;
  uint64_t cycles = 0;

 private:
  Session& session_;
  Entry entry_;
};

struct InTurns {
  std::vector<double> kept;
  uint32_t rejected = 0;
};

// A region of the whole program, as long as those by which `time` was found.
void run_whole(Timed& whole, const WallTime& time, InTurns& in_turns, Host& host) {
  const Region region = measure(whole, time.calls, host);
  if (region.disturbed) {
    ++in_turns.rejected;
  } else {
    in_turns.kept.push_back(std::max(region.seconds / time.calls, kLeastSeconds));
  }
}

void run_round(std::vector<ProfiledCall>& calls, Session& session, VtaLibrary& library,
               Host& host) {
  session.refill();
  for (ProfiledCall& each : calls) {
    const Region region = measure(each, 1, host);
    each.cycles = library.counters().cycles;
    if (region.disturbed) {
      ++each.rejected;
    } else {
      each.kept.push_back(std::max(region.seconds, kLeastSeconds));
    }
  }
  session.require_same_outputs();
}

bool any_untimed(const std::vector<ProfiledCall>& calls) {
  return std::any_of(calls.begin(), calls.end(),
                     [](const ProfiledCall& each) { return each.kept.empty(); });
}

}  // namespace

std::vector<CallTime> profile(Session& session, const Artifact& artifact, const Request& request,
                              std::optional<WallTime>& whole, VtaLibrary& library, Host& host) {
  std::vector<ProfiledCall> calls;
  for (const std::string& name : request.profile) calls.emplace_back(session, artifact.entry(name));
  if (calls.empty()) return {};
  const bool by_clock = request.precision.seconds > 0;
  if (!by_clock && !library.counts()) {
    fail(FailureKind::kUntimed, "a library without counters is timed with a precision alone");
  }
  RepeatedEntry program(session, artifact.entry(request.entry));
  InTurns in_turns;
  const double deadline = host.seconds() + request.precision.seconds;
  do {
    if (whole) run_whole(program, *whole, in_turns, host);
    run_round(calls, session, library, host);
  } while (by_clock && host.seconds() < deadline + (any_untimed(calls) ? kPatienceSeconds : 0));
  if (!in_turns.kept.empty()) whole = summary(in_turns.kept, whole->calls, in_turns.rejected);
  std::vector<CallTime> found;
  for (const ProfiledCall& each : calls) {
    CallTime time;
    time.cycles = each.cycles;
    if (by_clock) {
      if (each.kept.empty()) fail(FailureKind::kUntimed, disturbed_words(each.rejected));
      time.seconds = summary(each.kept, 1, each.rejected);
    }
    found.push_back(time);
  }
  return found;
}

}  // namespace tilefarm::runner
