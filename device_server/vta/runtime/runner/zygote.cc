#include "zygote.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <vector>

#include "accelerator.h"
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

// What a spawn request brings: the socket on which the child is spoken to, and what its standard
// error is; where its accelerator is apart, the socket to that, and the memory in which its buffers
// lie.
struct Parts {
  int child, log, accelerator = -1, memory = -1;
};

class Zygote {
 public:
  Zygote(int fd, const std::string& library_path, const SandboxLimits& limits, unsigned threads)
      : fd_(fd), library_(library_path), limits_(limits), threads_(threads) {}

  Reply ready() const {
    return ready_reply(sandbox_, library_.build_id(), library_.can_be_apart());
  }

  Reply serve(Frame& frame) {
    switch (frame.take<RequestKind>()) {
      case RequestKind::kConfigure: return configure(frame);
      case RequestKind::kSpawn: return spawn(frame);
      case RequestKind::kSpawnAccelerator: return spawn_accelerator(frame);
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
    const Parts parts = parts_of(frame);
    const pid_t parent = getppid();
    const pid_t child = fork_for_parent();
    if (child == 0) begin_child(parts, parent);
    return started(child);
  }

  Reply spawn_accelerator(Frame& frame) {
    if (frame.descriptors.size() != 1) fail(FailureKind::kProtocol, "an accelerator has a socket");
    const pid_t parent = getppid();
    const pid_t accelerator = fork_for_parent();
    if (accelerator == 0) begin_accelerator(frame.descriptors[0].get(), parent);
    return started(accelerator);
  }

  static Reply started(pid_t process) {
    if (process < 0) {
      fail(FailureKind::kProtocol, "no new process: " + std::string(strerror(errno)));
    }
    return Reply(ReplyKind::kStarted).put(static_cast<int32_t>(process));
  }

  static Parts parts_of(const Frame& frame) {
    const std::vector<Descriptor>& given = frame.descriptors;
    switch (given.size()) {
      case 2: return {given[0].get(), given[1].get()};
      case 4: return {given[0].get(), given[1].get(), given[2].get(), given[3].get()};
      default: fail(FailureKind::kProtocol, "a child has a socket, a log, and may have two more");
    }
  }

  // What fails in these ends the new process: it is no zygote.
  [[noreturn]] void begin_child(const Parts& parts, pid_t parent) noexcept {
    die_with(parent);
    limit_processor_time(limits_);
    setsid();
    dup2(parts.log, STDERR_FILENO);
    close(parts.log);
    close(fd_);
    if (parts.accelerator >= 0) {
      library_.share_memory(parts.memory);
      library_.connect(parts.accelerator);
    }
    be_child(parts.child, library_, sandbox_, threads_);
  }

  [[noreturn]] void begin_accelerator(int server, pid_t parent) noexcept {
    die_with(parent);
    limit_serving_time(limits_);
    close(fd_);
    be_accelerator(server, library_);
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
