// The accelerator as the process sees it that runs programs: somebody else's, behind a socket.
#ifndef TILEFARM_REMOTE_REMOTE_ACCELERATOR_H_
#define TILEFARM_REMOTE_REMOTE_ACCELERATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "encoding.h"
#include "remote/messages.h"

namespace tilefarm {

// Requests that need no answer wait for the next that does, or for `flush`. LOST from whatever
// sends when the other side has gone.
class RemoteAccelerator {
 public:
  explicit RemoteAccelerator(int socket) : socket_(socket) {}

  // Its buffers have the same addresses as this process's: both allocate in the same order.
  void allocate(uint64_t nbytes) { waiting_.push_back({RequestKind::kAllocate, 0, nbytes}); }
  void release(uint64_t address) { waiting_.push_back({RequestKind::kRelease, 0, address}); }
  void begin_call(bool record_timeline);

  // Fails as `Accelerator::run` does.
  void run(const std::vector<Word>& words, const std::vector<uint32_t>& uops);
  void flush();

  // Since the last run; empty when there are none.
  const std::string& tokens_left() const { return tokens_left_; }

 private:
  void send(const std::vector<Word>& words, const std::vector<uint32_t>& uops);
  void receive(void* to, size_t nbytes);
  std::string receive_text(size_t nbytes);

  const int socket_;
  std::vector<Request> waiting_;
  std::string tokens_left_;
};

}  // namespace tilefarm

#endif  // TILEFARM_REMOTE_REMOTE_ACCELERATOR_H_
