#include "session.h"

namespace tilefarm {

// Never destroyed: compiled code may still hold buffers when the process ends.
Session& Session::get() {
  static auto* session = new Session;
  return *session;
}

Runtime& Session::runtime() {
  if (!runtime_) runtime_ = std::make_unique<Runtime>(config_);
  return *runtime_;
}

void Session::configure(const Config& config) {
  runtime_.reset();
  config_ = config;
  errors_.clear();
}

}  // namespace tilefarm
