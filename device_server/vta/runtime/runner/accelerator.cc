#include "accelerator.h"

#include <poll.h>
#include <unistd.h>

#include <optional>
#include <utility>
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

class Accelerator {
 public:
  Accelerator(int server, VtaLibrary& library) : channel_(server), library_(library) {}

  [[noreturn]] void serve() {
    for (;;) {
      pollfd ends[] = {{channel_.fd(), POLLIN, 0}, {child(), POLLIN, 0}};
      if (ppoll(ends, 2, nullptr, nullptr) < 0) continue;
      ends[0].revents != 0 ? obey_server() : obey_child();
    }
  }

 private:
  int child() const { return sides_.empty() ? -1 : sides_[0].get(); }  // -1 is not waited for

  void obey_child() {
    if (!library_.serve(child())) sides_.clear();
  }

  void obey_server() {
    Frame frame;
    if (!channel_.receive(frame)) _exit(0);
    const auto kind = frame.take<RequestKind>();
    if (kind == RequestKind::kServe) return begin_anew(std::move(frame.descriptors));
    channel_.send(reply_or_failure([&] { return calls(kind); }));
  }

  // What the child before has asked and was not heard of is dropped with its socket.
  void begin_anew(std::vector<Descriptor> sides) {
    if (sides.size() != 2) _exit(1);
    sides_ = std::move(sides);
    library_.share_memory(sides_[1].get());
  }

  // What the child asked before its own answer belongs to the account of that.
  Reply calls(RequestKind kind) {
    if (kind != RequestKind::kCalls) {
      fail(FailureKind::kProtocol, "an accelerator tells its calls, and nothing else");
    }
    for (pollfd end = {child(), POLLIN, 0}; end.fd >= 0; end.fd = child()) {
      const timespec at_once{};
      if (ppoll(&end, 1, &at_once, nullptr) <= 0) break;
      obey_child();
    }
    return calls_reply(library_);
  }

  Channel channel_;
  VtaLibrary& library_;
  std::vector<Descriptor> sides_;  // a child's socket and memory; none before and after it
};

}  // namespace

void be_accelerator(int server, VtaLibrary& library) {
  report_crashes_to(server);
  try {
    enter_serving_stage();
    Accelerator(server, library).serve();
  } catch (const Failure& failure) {
    Channel(server).send(failure_reply(failure));
    _exit(1);
  }
}

}  // namespace tilefarm::runner
