// One job's buffers on the accelerator, and calls of entries on them.
#ifndef TILEFARM_RUNNER_SESSION_H_
#define TILEFARM_RUNNER_SESSION_H_

#include <cstdint>
#include <vector>

#include "artifact.h"
#include "request.h"
#include "vta_library.h"
#include "wall_time.h"

namespace tilefarm::runner {

// Allocates the buffers and fills them; releases them when it goes. kUnstable from every method
// that calls again what was called before, when the outputs are not the same.
class Session {
 public:
  Session(Request& request, VtaLibrary& library, Host& host);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One call with the inputs of a sample, whose outputs go into the results.
  Region run_sample(Entry entry, uint32_t sample, bool record_timeline);

  // Seconds of one more call with the inputs of the last sample.
  double repeat(Entry entry, bool record_timeline);

  // The inputs of the last sample, and zeros where outputs go: as before the first call.
  void refill();

  // One call of an entry, with nothing around it but what the library wants.
  void call(Entry entry, bool record_timeline);

  // The outputs are those of the last sample.
  void require_same_outputs() const;

 private:
  void fill_inputs(uint32_t sample);
  void fill_outputs();
  void require_same_output(const Buffer& buffer) const;

  Request& request_;
  VtaLibrary& library_;
  Host& host_;
  std::vector<void*> handles_;
  std::vector<int64_t> offsets_;
};

// An entry that is called again and again, each time with what it found at first.
class RepeatedEntry final : public Timed {
 public:
  RepeatedEntry(Session& session, Entry entry) : session_(session), entry_(entry) {}
  void prepare() override { session_.refill(); }
  void call() override { session_.call(entry_, false); }
  void check() override { session_.require_same_outputs(); }

 private:
  Session& session_;
  Entry entry_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_SESSION_H_
