#include "session.h"

namespace tilefarm {

// Never destroyed: compiled code may still hold buffers when the process ends.
Session& Session::get() {
  static auto* session = new Session;
  return *session;
}

Runtime& Session::runtime() {
  if (!runtime_) {
    runtime_ = std::make_unique<Runtime>(config_);
    runtime_->accelerator().limit_uops(uop_limit_);
    if (!vector_path_.empty()) runtime_->accelerator().use_vector_path(vector_path_);
  }
  return *runtime_;
}

AcceleratorServer& Session::server() {
  if (!server_) server_ = std::make_unique<AcceleratorServer>(runtime());
  return *server_;
}

void Session::drop_runtime() {
  server_.reset();
  runtime_.reset();
}

void Session::begin_anew(const Arena& arena) {
  errors_.clear();
  server_.reset();
  runtime().begin_anew(arena);
}

const std::vector<TimelineEntry>& Session::timeline() {
  return server_ ? server_->timeline() : runtime().accelerator().timeline();
}

void Session::limit_uops(uint64_t limit) {
  uop_limit_ = limit;
  runtime().accelerator().limit_uops(limit);
}

void Session::use_vector_path(const std::string& name) {
  runtime().reset();
  runtime().accelerator().use_vector_path(name);
  vector_path_ = name;
}

void Session::configure(const Config& config) {
  if (is_connected()) fail(TILEFARM_VTA_BAD_ARGUMENT, "the accelerator is another process's");
  drop_runtime();
  config_ = config;
  errors_.clear();
}

}  // namespace tilefarm
