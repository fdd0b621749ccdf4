// The VTA library that kernels run on: the original runtime's functions, and tilefarm's where it
// has them.
#ifndef TILEFARM_RUNNER_VTA_LIBRARY_H_
#define TILEFARM_RUNNER_VTA_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "tilefarm_vta.h"

namespace tilefarm::runner {

class VtaLibrary {
 public:
  // kLoad when it cannot be loaded, is for another machine, or lacks a function of the runtime.
  explicit VtaLibrary(const std::string& path);

  void configure(const tilefarm_vta_config& config);
  void warm_up();  // opens what a board's driver opens, before opening is forbidden
  // Descriptors of the devices that a board's driver has opened so far; a simulator has none.
  std::vector<int> devices() const;
  std::string build_id() const;

  // A process of its own may play the accelerator. Both processes share `arena`, and one calls
  // `connect`: from then on its counters, and its timeline, are with the other, which calls
  // `serve`.
  bool can_be_apart() const;
  void share_memory(int arena);
  void connect(int socket);
  bool is_connected() const { return connected_; }
  bool serve(int socket) { return serve_(socket) != 0; }  // false when there is no more to serve
  // What was served since this was asked last: why no more is, and the calls.
  std::optional<Failure> taken_calls(std::vector<tilefarm_vta_calls>& calls,
                                     std::vector<tilefarm_vta_event>& events);

  void* allocate(size_t nbytes);  // kMemory when there is no room
  void release(void* buffer) { free_(buffer); }
  void copy_in(void* buffer, const uint8_t* from, size_t nbytes);
  void copy_out(uint8_t* to, const void* buffer, size_t nbytes);

  // Around one call of an entry. `after_call` fails with the runtime's reason.
  void before_call(bool record_timeline);
  void after_call();
  // Whether anything counts cycles; what that is worth the known kernel shows.
  bool counts() const { return connected_ || has_counters(); }
  // Whether that is the library in this process.
  bool has_counters() const {
    return !connected_ && read_counters_ != nullptr && clear_counters_ != nullptr;
  }
  tilefarm_vta_counters counters() const;
  std::vector<tilefarm_vta_event> timeline() const;

 private:
  std::optional<Failure> last_failure() const;  // of the runtime

  void* handle_;
  bool connected_ = false;
  // The original's functions; always there.
  void* (*alloc_)(size_t);
  void (*free_)(void*);
  void (*copy_)(const void*, size_t, void*, size_t, size_t, int);
  void* (*command_handle_)();
  // tilefarm's; null in a board's own library.
  decltype(&tilefarm_vta_configure) configure_;
  decltype(&tilefarm_vta_reset) reset_;
  decltype(&tilefarm_vta_last_error) last_error_;
  decltype(&tilefarm_vta_check_idle) check_idle_;
  decltype(&tilefarm_vta_clear_counters) clear_counters_;
  decltype(&tilefarm_vta_read_counters) read_counters_;
  decltype(&tilefarm_vta_record_timeline) record_timeline_;
  decltype(&tilefarm_vta_read_timeline) read_timeline_;
  decltype(&tilefarm_vta_build_id) build_id_;
  decltype(&tilefarm_vta_begin_call) begin_call_;
  decltype(&tilefarm_vta_share_memory) share_memory_;
  decltype(&tilefarm_vta_connect) connect_;
  decltype(&tilefarm_vta_serve) serve_;
  decltype(&tilefarm_vta_read_calls) read_calls_;
  decltype(&tilefarm_vta_forget_calls) forget_calls_;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_VTA_LIBRARY_H_
