#include "remote/accelerator_server.h"

#include <cstring>
#include <string>
#include <utility>

#include "error.h"

namespace tilefarm {
namespace {

// A stream that is written out one instruction at a time has nearly twice as many.
constexpr uint64_t kMostWords = 2 * kStreamNbytes / kInstructionNbytes;
constexpr uint64_t kMostUops = kUopImageNbytes / kUopNbytes;

template <typename Value>
bool receive_values(int socket, std::vector<Value>& values, uint64_t count) {
  values.resize(count);
  return receive_all(socket, values.data(), count * sizeof(Value));
}

}  // namespace

bool AcceleratorServer::receive(int socket) {
  if (!receive_all(socket, &request_, sizeof request_)) return false;
  switch (request_.kind) {
    case RequestKind::kAllocate:
    case RequestKind::kRelease:
    case RequestKind::kBeginCall: return true;
    case RequestKind::kRun:
      return request_.words <= kMostWords && request_.value <= kMostUops &&
             receive_values(socket, words_, request_.words) &&
             receive_values(socket, uops_, request_.value);
  }
  return false;
}

void AcceleratorServer::obey() {
  Dram& dram = runtime_.accelerator().dram();
  switch (request_.kind) {
    case RequestKind::kAllocate:
      if (request_.value > SIZE_MAX) fail(TILEFARM_VTA_NO_MEMORY, "a buffer beyond all memory");
      dram.allocate(static_cast<size_t>(request_.value));
      return;
    case RequestKind::kRelease: return dram.release_at(request_.value);
    case RequestKind::kBeginCall: return begin_call(request_.value != 0);
    case RequestKind::kRun:
      if (!in_call_) fail(TILEFARM_VTA_BAD_ARGUMENT, "a stream outside of every call");
      return runtime_.execute(words_, std::move(uops_));
  }
}

bool AcceleratorServer::answer(int socket, const ErrorState& errors) {
  if (request_.kind != RequestKind::kRun) return true;
  std::string why = errors.why();
  std::string tokens = runtime_.accelerator().describe_tokens();
  Answer answer{static_cast<uint32_t>(errors.status()), static_cast<uint32_t>(why.size()),
                static_cast<uint32_t>(tokens.size())};
  return send_all(
      socket, {{&answer, sizeof answer}, {why.data(), why.size()}, {tokens.data(), tokens.size()}});
}

void AcceleratorServer::begin_call(bool record_timeline) {
  end_call();
  runtime_.reset();
  runtime_.accelerator().clear_counters();
  runtime_.accelerator().record_timeline(record_timeline);
  in_call_ = true;
  recording_ = record_timeline;
}

void AcceleratorServer::end_call() {
  if (!std::exchange(in_call_, false)) return;
  const tilefarm_vta_counters& counters = runtime_.accelerator().counters();
  if (recording_) timeline_ = runtime_.accelerator().timeline();
  const bool again =
      !calls_.empty() && std::memcmp(&calls_.back().each, &counters, sizeof counters) == 0;
  if (again) {
    ++calls_.back().calls;
  } else if (calls_.size() < most_entries_) {
    calls_.push_back({1, counters});
  } else {
    fail(TILEFARM_VTA_NO_MEMORY, "%zu calls that differ from the one before", most_entries_);
  }
  runtime_.check_idle();
}

const std::vector<tilefarm_vta_calls>& AcceleratorServer::calls() {
  end_call();
  return calls_;
}

void AcceleratorServer::forget() {
  in_call_ = false;
  calls_.clear();
  timeline_.clear();
}

}  // namespace tilefarm
