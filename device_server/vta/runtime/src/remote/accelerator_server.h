// The accelerator for programs of another process, which may be hostile: obeys its requests, and
// keeps account of its calls where it cannot write.
#ifndef TILEFARM_REMOTE_ACCELERATOR_SERVER_H_
#define TILEFARM_REMOTE_ACCELERATOR_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "error.h"
#include "remote/messages.h"
#include "runtime.h"
#include "tilefarm_vta.h"

namespace tilefarm {

// Instructions and micro-ops are copied before they are looked at; the buffers, which the other
// process may write at any time, hold nothing but numbers to compute with.
class AcceleratorServer {
 public:
  // Who asks for calls without end gets no memory without end: of the account so many entries.
  static constexpr size_t kMostEntries = size_t{1} << 16;

  explicit AcceleratorServer(Runtime& runtime, size_t most_entries = kMostEntries)
      : runtime_(runtime), most_entries_(most_entries) {}

  // What one request brings is received whole; false when there is none, or when it is none.
  bool receive(int socket);

  // Does what the request says. BAD_ARGUMENT for a run outside of calls.
  void obey();

  // To a request to run, how that ended; nothing to others. False when the other side has gone.
  bool answer(int socket, const ErrorState& errors);

  // The calls so far; equal ones in a row are one entry. Ends the one that is open.
  const std::vector<tilefarm_vta_calls>& calls();
  const std::vector<TimelineEntry>& timeline() const { return timeline_; }
  void forget();

 private:
  void begin_call(bool record_timeline);
  void end_call();

  Runtime& runtime_;
  const size_t most_entries_;
  Request request_{};
  std::vector<Word> words_;
  std::vector<uint32_t> uops_;
  bool in_call_ = false, recording_ = false;
  std::vector<tilefarm_vta_calls> calls_;
  std::vector<TimelineEntry> timeline_;
};

}  // namespace tilefarm

#endif  // TILEFARM_REMOTE_ACCELERATOR_SERVER_H_
