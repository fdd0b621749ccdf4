#include "run.h"

#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "profile.h"
#include "request.h"
#include "session.h"

namespace tilefarm::runner {
namespace {

void put_wall_time(Reply& reply, const std::optional<WallTime>& time) {
  reply.put(static_cast<uint8_t>(time.has_value()));
  if (!time) return;
  reply.put(time->minimum).put(time->p10).put(time->median).put(time->p90);
  reply.put(time->calls).put(time->regions).put(time->rejected);
}

}  // namespace

Reply run(Frame& frame, VtaLibrary& library, const Artifact& artifact) {
  Request request = Request::taken_from(frame);
  const bool counts = library.has_counters();
  Machine machine;
  const double begin = machine.seconds();
  Session session(request, library, machine);
  const Entry entry = artifact.entry(request.entry);
  std::vector<uint64_t> sample_cycles;
  Region last;
  for (uint32_t s = 0; s < request.samples; ++s) {
    last = session.run_sample(entry, s, request.repeats == 0 && s + 1 == request.samples);
    if (counts) sample_cycles.push_back(library.counters().cycles);
  }
  std::vector<double> seconds;
  for (uint32_t r = 0; r < request.repeats; ++r) {
    seconds.push_back(session.repeat(entry, r + 1 == request.repeats));
  }
  const tilefarm_vta_counters counters = library.counters();
  const bool has_timeline = counts && request.timeline;
  const auto events = has_timeline ? library.timeline() : std::vector<tilefarm_vta_event>{};
  std::optional<WallTime> time;
  if (request.precision.seconds > 0) {
    RepeatedEntry repeated(session, entry);
    time = wall_time(repeated, last, request.precision, machine);
  }
  const std::vector<CallTime> calls = profile(session, artifact, request, time, library, machine);

  Reply reply(ReplyKind::kDone);
  reply.put(machine.seconds() - begin).put(static_cast<uint8_t>(counts)).put(counters);
  reply.put(static_cast<uint32_t>(sample_cycles.size()));
  for (uint64_t cycles : sample_cycles) reply.put(cycles);
  reply.put(static_cast<uint32_t>(seconds.size()));
  for (double each : seconds) reply.put(each);
  put_wall_time(reply, time);
  reply.put(static_cast<uint32_t>(calls.size()));
  for (const CallTime& call : calls) {
    reply.put(call.cycles);
    put_wall_time(reply, call.seconds);
  }
  put_timeline(reply, events);
  return reply;
}

}  // namespace tilefarm::runner
