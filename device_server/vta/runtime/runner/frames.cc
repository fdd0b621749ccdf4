#include "frames.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace tilefarm::runner {
namespace {

constexpr size_t kMaxFrameNbytes = size_t{1} << 20;
constexpr size_t kMaxDescriptors = 128;

bool send_all(int fd, const char* from, size_t count) {
  while (count > 0) {
    const ssize_t sent = write(fd, from, count);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

void take_descriptors(const msghdr& message, std::vector<Descriptor>& to) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&message), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t k = 0; k < count; ++k) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + k * sizeof(int), sizeof fd);
      to.emplace_back(fd);
    }
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

const char* Frame::take_bytes(size_t count) {
  if (count > bytes_.size() - position_) fail(FailureKind::kProtocol, "a frame is too short");
  const char* from = bytes_.data() + position_;
  position_ += count;
  return from;
}

std::string Frame::take_text() {
  const auto count = take<uint32_t>();
  return std::string(take_bytes(count), count);
}

Reply& Reply::put_text(const std::string& text) {
  put(static_cast<uint32_t>(text.size()));
  bytes_ += text;
  return *this;
}

Reply ready_reply(const std::string& sandbox, const std::string& build_id, bool apart) {
  return Reply(ReplyKind::kReady).put_text(sandbox).put_text(build_id).put(uint8_t{apart});
}

void put_timeline(Reply& reply, const std::vector<tilefarm_vta_event>& events) {
  reply.put(static_cast<uint32_t>(events.size()));
  for (const tilefarm_vta_event& e : events) {
    reply.put(static_cast<uint8_t>(e.module)).put(e.begin_cycle).put(e.end_cycle);
    reply.put_text(e.name);
  }
}

Reply failure_reply(const Failure& failure) {
  return Reply(ReplyKind::kFailure).put(static_cast<uint8_t>(failure.kind)).put_text(failure.why);
}

Reply reply_or_failure(const std::function<Reply()>& serve) {
  try {
    return serve();
  } catch (const Failure& failure) {
    return failure_reply(failure);
  } catch (const std::bad_alloc&) {
    return failure_reply({FailureKind::kMemory, "the child's memory is exhausted"});
  }
}

bool Channel::receive_bytes(char* to, size_t count, std::vector<Descriptor>& descriptors) {
  while (count > 0) {
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
    iovec part{to, count};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    take_descriptors(message, descriptors);
    to += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

bool Channel::receive(Frame& frame) {
  uint32_t nbytes = 0;
  frame.descriptors.clear();
  frame.position_ = 0;
  char prefix[sizeof nbytes];
  if (!receive_bytes(prefix, sizeof prefix, frame.descriptors)) return false;
  std::memcpy(&nbytes, prefix, sizeof nbytes);
  if (nbytes > kMaxFrameNbytes) return false;
  frame.bytes_.resize(nbytes);
  return receive_bytes(frame.bytes_.data(), nbytes, frame.descriptors);
}

void Channel::send(const Reply& reply) {
  const auto nbytes = static_cast<uint32_t>(reply.bytes().size());
  std::string framed(reinterpret_cast<const char*>(&nbytes), sizeof nbytes);
  framed += reply.bytes();
  if (!send_all(fd_, framed.data(), framed.size())) _exit(0);
}

}  // namespace tilefarm::runner
