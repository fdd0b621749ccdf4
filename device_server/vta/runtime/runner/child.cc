#include "child.h"

#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "artifact.h"
#include "crash.h"
#include "frames.h"
#include "helpers.h"
#include "run.h"
#include "sandbox.h"

namespace tilefarm::runner {
namespace {

class Child {
 public:
  Child(VtaLibrary& library, const std::string& sandbox, unsigned threads)
      : library_(library), sandbox_(sandbox), threads_(threads) {}

  Reply serve(Frame& frame) {
    switch (frame.take<RequestKind>()) {
      case RequestKind::kLoad: return load(frame);
      case RequestKind::kRun: break;
      default: fail(FailureKind::kProtocol, "a child loads and runs, and nothing else");
    }
    if (!artifact_) fail(FailureKind::kProtocol, "nothing is loaded");
    return run(frame, library_, *artifact_);
  }

 private:
  Reply load(Frame& frame) {
    if (frame.descriptors.size() != 1) fail(FailureKind::kProtocol, "no artifact");
    if (artifact_) fail(FailureKind::kProtocol, "a child serves one artifact");
    if (!library_.is_connected()) library_.warm_up();
    // A file may have no name, so it is opened through its descriptor.
    const Descriptor file = std::move(frame.descriptors[0]);
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    const std::vector<int> devices = library_.devices();
    enter_first_stage(path, devices, [this] { start_helpers(threads_ - 1); });
    artifact_ = std::make_unique<Artifact>(path);
    name_addresses_within(artifact_->addresses());
    enter_second_stage(devices);
    artifact_->give(share_work());
    return ready_reply(sandbox_, library_.build_id(), library_.is_connected());
  }

  VtaLibrary& library_;
  const std::string& sandbox_;
  const unsigned threads_;
  std::unique_ptr<Artifact> artifact_;
};

}  // namespace

void be_child(int fd, VtaLibrary& library, const std::string& sandbox, unsigned threads) {
  Channel channel(fd);
  report_crashes_to(fd);
  Child child(library, sandbox, threads);
  for (Frame frame; channel.receive(frame);) {
    channel.send(reply_or_failure([&] { return child.serve(frame); }));
  }
  _exit(0);  // destructors of untrusted code are not run
}

}  // namespace tilefarm::runner
