#include "remote/messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tilefarm {

// A filter may allow sendmsg alone; without MSG_NOSIGNAL a process dies of who has gone.
bool send_all(int socket, std::vector<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (message.msg_iovlen > 0) {
    if (message.msg_iov->iov_len == 0) {
      ++message.msg_iov;
      --message.msg_iovlen;
      continue;
    }
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    auto left = static_cast<size_t>(sent);
    for (iovec* part = message.msg_iov; left > 0; ++part) {
      const size_t gone = left < part->iov_len ? left : part->iov_len;
      part->iov_base = static_cast<char*>(part->iov_base) + gone;
      part->iov_len -= gone;
      left -= gone;
    }
  }
  return true;
}

bool receive_all(int socket, void* to, size_t nbytes) {
  auto* next = static_cast<char*>(to);
  while (nbytes > 0) {
    const ssize_t got = read(socket, next, nbytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    nbytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace tilefarm
