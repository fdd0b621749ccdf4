// vta-runner: loads the VTA library and one artifact, runs what its parent asks, and gives up its
// rights.
//
// usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES THREADS
//
// Requests: configure, load (once), run (many). After loading, nothing can be opened any more, so a
// child serves one artifact; contents and results come as descriptors.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "artifact.h"
#include "crash.h"
#include "frames.h"
#include "helpers.h"
#include "run.h"
#include "sandbox.h"
#include "vta_library.h"

namespace tilefarm::runner {
namespace {

constexpr int kConfigWords = sizeof(tilefarm_vta_config) / sizeof(int32_t);

class Runner {
 public:
  Runner(const std::string& library_path, unsigned threads)
      : library_(library_path), threads_(threads) {}

  Reply ready() const {
    return Reply(ReplyKind::kReady).put_text(sandbox_).put_text(library_.build_id());
  }

  Reply serve(Frame& frame) {
    switch (frame.take<RequestKind>()) {
      case RequestKind::kConfigure: return configure(frame);
      case RequestKind::kLoad: return load(frame);
      case RequestKind::kRun: break;
    }
    if (!artifact_) fail(FailureKind::kProtocol, "nothing is loaded");
    return run(frame, library_, *artifact_);
  }

 private:
  Reply configure(Frame& frame) {
    int32_t words[kConfigWords];
    for (int32_t& word : words) word = frame.take<int32_t>();
    tilefarm_vta_config config;
    std::memcpy(&config, words, sizeof config);
    library_.configure(config);
    return ready();
  }

  Reply load(Frame& frame) {
    const std::string path = frame.take_text();
    if (artifact_) fail(FailureKind::kProtocol, "a child serves one artifact");
    library_.warm_up();
    enter_first_stage(path, [this] { start_helpers(threads_ - 1); });
    artifact_ = std::make_unique<Artifact>(path);
    name_addresses_within(artifact_->addresses());
    enter_second_stage();
    artifact_->give(share_work());
    return ready();
  }

  const std::string sandbox_ = sandbox_level();  // asked before asking is forbidden
  VtaLibrary library_;
  const unsigned threads_;  // of a kernel's work, the one that serves included
  std::unique_ptr<Artifact> artifact_;
};

Reply failure_reply(const Failure& failure) {
  return Reply(ReplyKind::kFailure).put(static_cast<uint8_t>(failure.kind)).put_text(failure.why);
}

Reply serve_or_explain(Runner& runner, Frame& frame) {
  try {
    return runner.serve(frame);
  } catch (const Failure& failure) {
    return failure_reply(failure);
  } catch (const std::bad_alloc&) {
    return failure_reply({FailureKind::kMemory, "the child's memory is exhausted"});
  }
}

int serve_until_closed(int fd, const std::string& library, const SandboxLimits& limits,
                       unsigned threads) {
  Channel channel(fd);
  limit_resources(limits);
  report_crashes_to(fd);
  std::unique_ptr<Runner> runner;
  try {
    runner = std::make_unique<Runner>(library, threads);
  } catch (const Failure& failure) {
    channel.send(failure_reply(failure));
    return 1;
  }
  channel.send(runner->ready());
  for (Frame frame; channel.receive(frame);) channel.send(serve_or_explain(*runner, frame));
  _exit(0);  // destructors of untrusted code are not run
}

}  // namespace
}  // namespace tilefarm::runner

int main(int argc, char** argv) {
  const unsigned threads = argc == 6 ? static_cast<unsigned>(std::atoi(argv[5])) : 0;
  if (threads == 0) {
    std::fprintf(stderr,
                 "usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES THREADS\n");
    return 2;
  }
  const tilefarm::runner::SandboxLimits limits{std::strtoull(argv[3], nullptr, 10),
                                               std::strtoull(argv[4], nullptr, 10)};
  return tilefarm::runner::serve_until_closed(std::atoi(argv[1]), argv[2], limits, threads);
}
