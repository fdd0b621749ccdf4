#include "vta_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "failure.h"
#include "sandbox.h"
#include "vta_runtime.h"

namespace tilefarm::runner {
namespace {

constexpr int kFromDevice = 2;
constexpr int kToDevice = 1;
constexpr size_t kWhyNbytes = 1024;
constexpr size_t kMostDevices = 16;

template <typename Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

#define NAME(result, name, parameters, names) #name,
constexpr const char* kRuntimeFunctions[] = {
    VTA_HOSTS(NAME) VTA_HANDLING(NAME) VTA_QUEUING(NAME) VTA_SYNCHRONIZING(NAME)};

void require_runtime_functions(void* handle, const std::string& path) {
  std::string missing;
  for (const char* name : kRuntimeFunctions) {
    if (dlsym(handle, name) == nullptr)
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) fail(FailureKind::kLoad, "the VTA library " + path + " lacks " + missing);
}

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "aarch64";
    case EM_ARM: return "arm";
    case EM_386: return "x86";
    case EM_RISCV: return "riscv";
    default: return "machine " + std::to_string(machine);
  }
}

// The loader's own words for a library of another machine are that there is no such file.
void require_this_machine(const std::string& path) {
#if defined(__x86_64__)
  constexpr uint16_t kThisMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr uint16_t kThisMachine = EM_AARCH64;
#elif defined(__arm__)
  constexpr uint16_t kThisMachine = EM_ARM;
#else
  constexpr uint16_t kThisMachine = EM_NONE;
#endif
  Elf64_Ehdr header;  // The machine is at the same place in files of 32 bits.
  std::ifstream file(path, std::ios::binary);
  const bool whole = bool(file.read(reinterpret_cast<char*>(&header), sizeof header));
  if (!whole || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  if (kThisMachine == EM_NONE || header.e_machine == kThisMachine) return;
  fail(FailureKind::kLoad, "the VTA library " + path + " is for " + machine_name(header.e_machine) +
                               ", this machine is " + machine_name(kThisMachine));
}

void* opened(const std::string& path) {
  require_this_machine(path);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) fail(FailureKind::kLoad, dlerror());
  require_runtime_functions(handle, path);
  return handle;
}

}  // namespace

VtaLibrary::VtaLibrary(const std::string& path) : handle_(opened(path)) {
  find(handle_, "VTABufferAlloc", alloc_);
  find(handle_, "VTABufferFree", free_);
  find(handle_, "VTABufferCopy", copy_);
  find(handle_, "VTATLSCommandHandle", command_handle_);
  find(handle_, "tilefarm_vta_configure", configure_);
  find(handle_, "tilefarm_vta_reset", reset_);
  find(handle_, "tilefarm_vta_last_error", last_error_);
  find(handle_, "tilefarm_vta_check_idle", check_idle_);
  find(handle_, "tilefarm_vta_clear_counters", clear_counters_);
  find(handle_, "tilefarm_vta_read_counters", read_counters_);
  find(handle_, "tilefarm_vta_record_timeline", record_timeline_);
  find(handle_, "tilefarm_vta_read_timeline", read_timeline_);
  find(handle_, "tilefarm_vta_build_id", build_id_);
  find(handle_, "tilefarm_vta_begin_call", begin_call_);
  find(handle_, "tilefarm_vta_share_memory", share_memory_);
  find(handle_, "tilefarm_vta_connect", connect_);
  find(handle_, "tilefarm_vta_serve", serve_);
  find(handle_, "tilefarm_vta_read_calls", read_calls_);
  find(handle_, "tilefarm_vta_forget_calls", forget_calls_);
}

// A board's own library is what it is; only tilefarm's takes a configuration.
void VtaLibrary::configure(const tilefarm_vta_config& config) {
  if (configure_ == nullptr) return;
  if (configure_(&config) != TILEFARM_VTA_OK) {
    char why[kWhyNbytes];
    last_error_(why, sizeof why);
    fail(FailureKind::kProtocol, why);
  }
  warm_up();  // A simulator is memory and nothing else: forked children share what none writes.
}

void VtaLibrary::warm_up() {
  command_handle_();
  release(allocate(1));
}

// All that this process has open beside its standard streams, other than by the driver, are files
// and sockets.
std::vector<int> VtaLibrary::devices() const {
  std::vector<int> found;
  if (configure_ != nullptr) return found;
  for (int fd = STDERR_FILENO + 1; fd < kOpenFiles && found.size() < kMostDevices; ++fd) {
    struct stat file;
    if (fstat(fd, &file) == 0 && S_ISCHR(file.st_mode)) found.push_back(fd);
  }
  return found;
}

std::string VtaLibrary::build_id() const { return build_id_ ? build_id_() : "unknown VTA library"; }

void* VtaLibrary::allocate(size_t nbytes) {
  void* buffer = alloc_(nbytes);
  if (buffer == nullptr) {
    fail(FailureKind::kMemory, "no room for a buffer of " + std::to_string(nbytes) + " bytes");
  }
  return buffer;
}

void VtaLibrary::copy_in(void* buffer, const uint8_t* from, size_t nbytes) {
  if (nbytes > 0) copy_(from, 0, buffer, 0, nbytes, kToDevice);
}

void VtaLibrary::copy_out(uint8_t* to, const void* buffer, size_t nbytes) {
  if (nbytes > 0) copy_(buffer, 0, to, 0, nbytes, kFromDevice);
}

bool VtaLibrary::can_be_apart() const {
  return begin_call_ && share_memory_ && connect_ && serve_ && read_calls_ && forget_calls_;
}

void VtaLibrary::share_memory(int arena) {
  const off_t nbytes = lseek(arena, 0, SEEK_END);
  if (nbytes < 0 || share_memory_(arena, static_cast<uint64_t>(nbytes)) != TILEFARM_VTA_OK) {
    fail(FailureKind::kProtocol, "buffers cannot be shared");
  }
}

void VtaLibrary::connect(int socket) {
  if (connect_(socket) != TILEFARM_VTA_OK) fail(FailureKind::kProtocol, "no accelerator");
  connected_ = true;
}

std::optional<Failure> VtaLibrary::taken_calls(std::vector<tilefarm_vta_calls>& calls,
                                               std::vector<tilefarm_vta_event>& events) {
  calls.resize(read_calls_(nullptr, 0));
  read_calls_(calls.data(), calls.size());
  events = timeline();
  const std::optional<Failure> failure = last_failure();
  forget_calls_();
  return failure;
}

void VtaLibrary::before_call(bool record_timeline) {
  if (connected_) return begin_call_(record_timeline);
  if (reset_) reset_();
  if (clear_counters_) clear_counters_();
  if (record_timeline_) record_timeline_(record_timeline);
}

void VtaLibrary::after_call() {
  if (check_idle_ == nullptr || check_idle_() == TILEFARM_VTA_OK) return;
  throw *last_failure();
}

std::optional<Failure> VtaLibrary::last_failure() const {
  char why[kWhyNbytes];
  const int status = last_error_(why, sizeof why);
  if (status == TILEFARM_VTA_OK) return std::nullopt;
  return Failure{status == TILEFARM_VTA_NO_MEMORY ? FailureKind::kMemory : FailureKind::kRuntime,
                 why};
}

tilefarm_vta_counters VtaLibrary::counters() const {
  tilefarm_vta_counters counters{};
  if (read_counters_) read_counters_(&counters);
  return counters;
}

std::vector<tilefarm_vta_event> VtaLibrary::timeline() const {
  if (read_timeline_ == nullptr) return {};
  std::vector<tilefarm_vta_event> events(read_timeline_(nullptr, 0));
  read_timeline_(events.data(), events.size());
  return events;
}

}  // namespace tilefarm::runner
