#include "remote/remote_accelerator.h"

#include "error.h"

namespace tilefarm {
namespace {

[[noreturn]] void fail_lost() {
  fail(TILEFARM_VTA_LOST, "the process that plays the accelerator has ended");
}

template <typename Value>
iovec bytes_of(const std::vector<Value>& values) {
  return {const_cast<Value*>(values.data()), values.size() * sizeof(Value)};
}

}  // namespace

void RemoteAccelerator::begin_call(bool record_timeline) {
  waiting_.push_back({RequestKind::kBeginCall, 0, record_timeline});
  tokens_left_.clear();
}

void RemoteAccelerator::run(const std::vector<Word>& words, const std::vector<uint32_t>& uops) {
  waiting_.push_back({RequestKind::kRun, static_cast<uint32_t>(words.size()), uops.size()});
  send(words, uops);
  Answer answer;
  receive(&answer, sizeof answer);
  const std::string why = receive_text(answer.why_nbytes);
  tokens_left_ = receive_text(answer.tokens_nbytes);
  if (answer.status == TILEFARM_VTA_OK) return;
  throw Fault{static_cast<tilefarm_vta_status>(answer.status), why};
}

void RemoteAccelerator::flush() {
  if (!waiting_.empty()) send({}, {});
}

void RemoteAccelerator::send(const std::vector<Word>& words, const std::vector<uint32_t>& uops) {
  const std::vector<Request> requests = std::move(waiting_);
  waiting_.clear();
  if (!send_all(socket_, {bytes_of(requests), bytes_of(words), bytes_of(uops)})) fail_lost();
}

void RemoteAccelerator::receive(void* to, size_t nbytes) {
  if (!receive_all(socket_, to, nbytes)) fail_lost();
}

std::string RemoteAccelerator::receive_text(size_t nbytes) {
  std::string text(nbytes, '\0');
  receive(text.data(), nbytes);
  return text;
}

}  // namespace tilefarm
