#include "session.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "failure.h"

namespace tilefarm::runner {
namespace {

// A first call, whose inputs are there already and whose outputs are looked at elsewhere.
class FirstCall final : public Timed {
 public:
  FirstCall(Session& session, Entry entry, bool record_timeline)
      : session_(session), entry_(entry), record_timeline_(record_timeline) {}
  void prepare() override {}
  void call() override { session_.call(entry_, record_timeline_); }
  void check() override {}

 private:
  Session& session_;
  Entry entry_;
  bool record_timeline_;
};

}  // namespace

Session::Session(Request& request, VtaLibrary& library, Host& host)
    : request_(request), library_(library), host_(host) {
  for (Buffer& b : request.buffers) {
    b.handle = library.allocate(b.nbytes);
    handles_.push_back(b.handle);
    if (b.role == Role::kConstant && b.content) {
      library_.copy_in(b.handle, b.content->data(), b.nbytes);
    }
  }
  fill_outputs();
  offsets_.resize(handles_.size(), 0);
}

Session::~Session() {
  for (void* handle : handles_) library_.release(handle);
}

Region Session::run_sample(Entry entry, uint32_t sample, bool record_timeline) {
  fill_inputs(sample);
  FirstCall first(*this, entry, record_timeline);
  const Region region = measure(first, 1, host_);
  for (const Buffer& b : request_.buffers) {
    if (b.role == Role::kOutput)
      library_.copy_out(b.results + sample * b.nbytes, b.handle, b.nbytes);
  }
  return region;
}

double Session::repeat(Entry entry, bool record_timeline) {
  fill_inputs(request_.samples - 1);
  FirstCall again(*this, entry, record_timeline);
  const double seconds = std::max(measure(again, 1, host_).seconds, kLeastSeconds);
  require_same_outputs();
  return seconds;
}

void Session::refill() {
  fill_inputs(request_.samples - 1);
  fill_outputs();
}

void Session::call(Entry entry, bool record_timeline) {
  library_.before_call(record_timeline && request_.timeline);
  const int32_t status = entry(handles_.data(), offsets_.data());
  library_.after_call();
  if (status == 0) return;
  fail(FailureKind::kRuntime, request_.entry + " returned " + std::to_string(status));
}

void Session::require_same_outputs() const {
  for (const Buffer& b : request_.buffers) require_same_output(b);
}

void Session::fill_inputs(uint32_t sample) {
  for (const Buffer& b : request_.buffers) {
    if (b.role != Role::kInput || !b.content) continue;
    library_.copy_in(b.handle, b.content->data() + sample * b.nbytes, b.nbytes);
  }
}

void Session::fill_outputs() {
  for (const Buffer& b : request_.buffers) {
    if (b.role != Role::kOutput) continue;
    const std::vector<uint8_t> zeros(b.nbytes);
    library_.copy_in(b.handle, zeros.data(), b.nbytes);
  }
}

void Session::require_same_output(const Buffer& b) const {
  if (b.role != Role::kOutput || b.nbytes == 0) return;
  std::vector<uint8_t> again(b.nbytes);
  library_.copy_out(again.data(), b.handle, b.nbytes);
  const uint8_t* first = b.results + (request_.samples - 1) * b.nbytes;
  if (std::memcmp(first, again.data(), b.nbytes) == 0) return;
  const auto index = &b - request_.buffers.data();
  fail(FailureKind::kUnstable,
       "buffer " + std::to_string(index) + " differs between two calls with the same inputs");
}

}  // namespace tilefarm::runner
