#include "sandbox.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "failure.h"
#include "landlock.h"
#include "seccomp.h"

namespace tilefarm::runner {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kInstrumented = true;  // the sanitizer needs its shadow memory, files and signals
#else
constexpr bool kInstrumented = false;
#endif

void limit(decltype(RLIMIT_CORE) resource, rlim_t soft, rlim_t hard) {
  const rlimit both{soft, hard};
  setrlimit(resource, &both);
}

void limit(decltype(RLIMIT_CORE) resource, rlim_t value) { limit(resource, value, value); }

void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  syscall(SYS_capset, &header, none);
}

}  // namespace

void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

void limit_resources(const SandboxLimits& limits) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, kOpenFiles);
  limit(RLIMIT_FSIZE, limits.file_nbytes);
  if (!kInstrumented) limit(RLIMIT_AS, limits.memory_nbytes);
  drop_capabilities();
}

void limit_processor_time(const SandboxLimits& limits) {
  limit(RLIMIT_CPU, std::min(limits.load_seconds, limits.run_seconds), limits.run_seconds);
}

void limit_serving_time(const SandboxLimits& limits) { limit(RLIMIT_CPU, limits.run_seconds); }

void enter_first_stage(const std::string& artifact_path, const std::vector<int>& devices,
                       const std::function<void()>& last_threads) {
  if (!kInstrumented && !allow_reading_only(artifact_path)) {
    fail(FailureKind::kProtocol, "Landlock was refused");
  }
  last_threads();
  limit(RLIMIT_NPROC, 0);
  if (kInstrumented) return;
  if (seccomp_available() && !allow_only_loading(devices)) {
    fail(FailureKind::kProtocol, "the first system-call filter was refused");
  }
}

void enter_second_stage(const std::vector<int>& devices) {
  if (kInstrumented) return;
  if (seccomp_available() && !allow_only_computing(devices)) {
    fail(FailureKind::kProtocol, "the second system-call filter was refused");
  }
}

void enter_serving_stage() {
  limit(RLIMIT_NPROC, 0);
  if (kInstrumented) return;
  if (seccomp_available() && !allow_only_serving()) {
    fail(FailureKind::kProtocol, "the accelerator's system-call filter was refused");
  }
}

std::string sandbox_level() {
  if (kInstrumented) return "rlimits only (sanitizer build)";
  std::string level = "rlimits, no_new_privs, no capabilities";
  if (seccomp_available()) level += ", two-stage seccomp";
  if (const int abi = landlock_abi()) level += ", Landlock ABI " + std::to_string(abi);
  return level;
}

}  // namespace tilefarm::runner
