#include "accelerator.h"

#include <poll.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "crash.h"
#include "failure.h"
#include "frames.h"
#include "sandbox.h"

namespace tilefarm::runner {
namespace {

// The calls that were made since the last time, and why nothing more was done, if that is so.
Reply calls_reply(VtaLibrary& library) {
  std::vector<tilefarm_vta_calls> calls;
  std::vector<tilefarm_vta_event> events;
  const std::optional<Failure> failure = library.taken_calls(calls, events);
  Reply reply(ReplyKind::kCalls);
  reply.put(static_cast<uint8_t>(failure.has_value()));
  if (failure) reply.put(static_cast<uint8_t>(failure->kind)).put_text(failure->why);
  reply.put(static_cast<uint32_t>(calls.size()));
  for (const tilefarm_vta_calls& each : calls) reply.put(each);
  put_timeline(reply, events);
  return reply;
}

Reply answer(Frame& frame, VtaLibrary& library) {
  if (frame.take<RequestKind>() != RequestKind::kCalls) {
    fail(FailureKind::kProtocol, "an accelerator tells its calls, and nothing else");
  }
  return calls_reply(library);
}

}  // namespace

void be_accelerator(int server, int child, VtaLibrary& library) {
  report_crashes_to(server);
  Channel channel(server);
  try {
    enter_serving_stage();
  } catch (const Failure& failure) {
    channel.send(failure_reply(failure));
    _exit(1);
  }
  pollfd ends[] = {{server, POLLIN, 0}, {child, POLLIN, 0}};
  for (Frame frame;;) {
    if (ppoll(ends, 2, nullptr, nullptr) < 0) continue;
    // The child first: what it asked before its own answer belongs to the account of that.
    if (ends[1].revents != 0) {
      if (!library.serve(child)) ends[1] = {-1, 0, 0};  // a negative one is not waited for
    } else if (ends[0].revents != 0) {
      if (!channel.receive(frame)) _exit(0);
      channel.send(reply_or_failure([&] { return answer(frame, library); }));
    }
  }
}

}  // namespace tilefarm::runner
