#include "zygote.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "child.h"
#include "crash.h"
#include "frames.h"
#include "vta_library.h"

namespace tilefarm::runner {
namespace {

constexpr int kConfigWords = sizeof(tilefarm_vta_config) / sizeof(int32_t);

// A fork whose child is a child of this process's parent. The C library has no call for it; this
// process has one thread, so none of its locks is held by another.
pid_t fork_for_parent() {
  return static_cast<pid_t>(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

class Zygote {
 public:
  Zygote(int fd, const std::string& library_path, const SandboxLimits& limits, unsigned threads)
      : fd_(fd), library_(library_path), limits_(limits), threads_(threads) {}

  Reply ready() const { return ready_reply(sandbox_, library_.build_id()); }

  Reply serve(Frame& frame) {
    switch (frame.take<RequestKind>()) {
      case RequestKind::kConfigure: return configure(frame);
      case RequestKind::kSpawn: return spawn(frame);
      default: fail(FailureKind::kProtocol, "this is no child: it loads and runs nothing");
    }
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

  Reply spawn(Frame& frame) {
    if (frame.descriptors.size() != 2) fail(FailureKind::kProtocol, "no socket, or no stderr");
    const pid_t parent = getppid();
    const pid_t child = fork_for_parent();
    if (child < 0) fail(FailureKind::kProtocol, "no new process: " + std::string(strerror(errno)));
    if (child == 0) begin_child(frame, parent);
    return Reply(ReplyKind::kStarted).put(static_cast<int32_t>(child));
  }

  [[noreturn]] void begin_child(const Frame& frame, pid_t parent) {
    die_with(parent);
    limit_processor_time(limits_);
    setsid();
    const int socket = frame.descriptors[0].get(), log = frame.descriptors[1].get();
    dup2(log, STDERR_FILENO);
    close(log);
    close(fd_);
    be_child(socket, library_, sandbox_, threads_);
  }

  const int fd_;
  const std::string sandbox_ = sandbox_level();
  VtaLibrary library_;
  const SandboxLimits limits_;
  const unsigned threads_;
};

}  // namespace

int be_zygote(int fd, const std::string& library, const SandboxLimits& limits, unsigned threads) {
  Channel channel(fd);
  die_with(getppid());
  limit_resources(limits);
  report_crashes_to(fd);
  std::unique_ptr<Zygote> zygote;
  channel.send(reply_or_failure([&] {
    zygote = std::make_unique<Zygote>(fd, library, limits, threads);
    return zygote->ready();
  }));
  if (!zygote) return 1;
  for (Frame frame; channel.receive(frame);) {
    channel.send(reply_or_failure([&] { return zygote->serve(frame); }));
  }
  return 0;
}

}  // namespace tilefarm::runner
