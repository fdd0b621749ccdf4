// The process's one runtime and its error state, and the guard around every exported function.
#ifndef TILEFARM_SESSION_H_
#define TILEFARM_SESSION_H_

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "error.h"
#include "remote/accelerator_server.h"
#include "runtime.h"

namespace tilefarm {

class Session {
 public:
  static Session& get();

  AcceleratorServer& server();  // likewise
  Runtime& runtime();           // made with the current configuration at the first use
  ErrorState& errors() { return errors_; }
  void configure(const Config& config);
  const Config& config() const { return config_; }
  bool is_connected() const { return runtime_ && runtime_->is_connected(); }
  const std::vector<TimelineEntry>& timeline();
  void drop_runtime();
  // The accelerator of another process, or of the next one: nothing is left of what was before.
  void begin_anew(const Arena& arena);

  // Both hold for this accelerator and those configured later.
  void limit_uops(uint64_t limit);
  void use_vector_path(const std::string& name);

  // Runs `body`; failures are recorded, nothing is thrown.
  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (const Fault& fault) {
      errors_.record(fault);
    } catch (const std::bad_alloc&) {
      errors_.record({TILEFARM_VTA_NO_MEMORY, "the host's memory is exhausted"});
    }
  }

  // As `guarded`, but does nothing while a failure is remembered.
  template <typename Body>
  void unless_failed(const Body& body) {
    if (errors_.ok()) guarded(body);
  }

 private:
  Config config_;
  ErrorState errors_;
  uint64_t uop_limit_ = uint64_t{1} << 31;
  std::string vector_path_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<AcceleratorServer> server_;  // where this process is the accelerator of another
};

}  // namespace tilefarm

#endif  // TILEFARM_SESSION_H_
