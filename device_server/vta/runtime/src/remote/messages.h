// What a process that runs programs asks of the process that plays the accelerator, over a socket.
//
// A request is a `Request`; a kRun brings its instructions and micro-ops behind it and is the only
// one that is answered, by an `Answer` and its texts. Both processes are copies of one, so numbers
// are those of this machine.
#ifndef TILEFARM_REMOTE_MESSAGES_H_
#define TILEFARM_REMOTE_MESSAGES_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilefarm {

enum class RequestKind : uint32_t {
  kAllocate = 1,   // value: bytes
  kRelease = 2,    // value: the buffer's address
  kBeginCall = 3,  // value: whether its timeline is wanted
  kRun = 4         // words: instructions; value: micro-ops
};

struct Request {
  RequestKind kind;
  uint32_t words;
  uint64_t value;
};

// The run's status, and the lengths of its reason and of the tokens that are left, in words.
struct Answer {
  uint32_t status, why_nbytes, tokens_nbytes;
};

// All of it, one part after the other; false when the other side has gone.
bool send_all(int socket, std::vector<iovec> parts);
bool receive_all(int socket, void* to, size_t nbytes);

}  // namespace tilefarm

#endif  // TILEFARM_REMOTE_MESSAGES_H_
