// Length-prefixed frames on a process's socket, with file descriptors beside them.
//
// A frame is a little-endian uint32 length and that many bytes; the first byte says its kind. Texts
// are a uint32 length and UTF-8 bytes. Descriptors travel with the first byte (SCM_RIGHTS).
#ifndef TILEFARM_RUNNER_FRAMES_H_
#define TILEFARM_RUNNER_FRAMES_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "failure.h"
#include "tilefarm_vta.h"

namespace tilefarm::runner {

enum class RequestKind : uint8_t {
  kConfigure = 1,
  kLoad = 2,
  kRun = 3,
  kSpawn = 4,
  kCalls = 5,
  kSpawnAccelerator = 6,
  kServe = 7
};
enum class ReplyKind : uint8_t {
  kReady = 1,
  kDone = 2,
  kFailure = 3,
  kFault = 4,
  kStarted = 5,
  kCalls = 6
};

// A received descriptor, closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Takes values from a received frame; kProtocol failures when it is too short.
class Frame {
 public:
  Frame() = default;
  std::vector<Descriptor> descriptors;

  template <typename Value>
  Value take() {
    Value value;
    std::memcpy(&value, take_bytes(sizeof value), sizeof value);
    return value;
  }
  std::string take_text();

 private:
  friend class Channel;
  const char* take_bytes(size_t count);

  std::string bytes_;
  size_t position_ = 0;
};

// Puts values into a frame to send.
class Reply {
 public:
  explicit Reply(ReplyKind kind) { put(static_cast<uint8_t>(kind)); }
  template <typename Value>
  Reply& put(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Reply& put_text(const std::string& text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// What a process is, once it is up, configured or loaded.
// `apart`: whether a process of its own plays the accelerator.
Reply ready_reply(const std::string& sandbox, const std::string& build_id, bool apart);

void put_timeline(Reply& reply, const std::vector<tilefarm_vta_event>& events);

Reply failure_reply(const Failure& failure);

// What `serve` gives, or the failure that it throws.
Reply reply_or_failure(const std::function<Reply()>& serve);

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  bool receive(Frame& frame);  // false when the other side has gone
  void send(const Reply& reply);
  int fd() const { return fd_; }

 private:
  bool receive_bytes(char* to, size_t count, std::vector<Descriptor>& descriptors);

  int fd_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_FRAMES_H_
