#include "crash.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

#include "frames.h"

namespace tilefarm::runner {
namespace {

constexpr size_t kStackNbytes = size_t{64} << 10;
constexpr size_t kProbeNbytes = size_t{16} << 20;  // no room for this much: memory is exhausted
constexpr uint64_t kOutside = UINT64_MAX;

#pragma pack(push, 1)
// As device_server/runner/frames.py reads it.
struct FaultFrame {
  uint32_t nbytes = sizeof(FaultFrame) - sizeof(uint32_t);
  ReplyKind kind = ReplyKind::kFault;
  int32_t signal = 0;
  int32_t code = 0;
  uint64_t address = 0;
  uint64_t artifact_offset = kOutside;
  int32_t system_call = -1;
  uint8_t memory_exhausted = 0;
};
#pragma pack(pop)

int report_fd = -1;
std::atomic_flag is_reported = ATOMIC_FLAG_INIT;
AddressRange artifact_addresses;

uintptr_t program_counter(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(machine->pc);
#elif defined(__arm__)
  return static_cast<uintptr_t>(machine->arm_pc);
#else
  (void)machine;
  return 0;
#endif
}

bool memory_is_exhausted() {
  void* probe = mmap(nullptr, kProbeNbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return true;
  munmap(probe, kProbeNbytes);
  return false;
}

// Only calls that are safe in a signal handler. All signals are blocked in it. The first thread that
// comes here speaks for the process: others, which may fail at the same time, wait for its end.
void report(int signal, siginfo_t* info, void* context) {
  while (is_reported.test_and_set()) sleep(1);
  FaultFrame frame;
  frame.signal = signal;
  frame.code = info->si_code;
  if (signal == SIGSYS) {
    frame.system_call = info->si_syscall;
  } else {
    frame.address = reinterpret_cast<uintptr_t>(info->si_addr);
  }
  const uintptr_t pc = program_counter(context);
  if (pc >= artifact_addresses.begin && pc < artifact_addresses.end) {
    frame.artifact_offset = pc - artifact_addresses.begin;
  }
  frame.memory_exhausted = memory_is_exhausted();
  const ssize_t ignored = write(report_fd, &frame, sizeof frame);
  (void)ignored;
  std::signal(signal, SIG_DFL);
  raise(signal);  // ends the process when this function returns
}

}  // namespace

void have_crash_stack() {
  stack_t stack{};
  stack.ss_size = kStackNbytes;
  stack.ss_sp =
      mmap(nullptr, kStackNbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
}

void report_crashes_to(int fd) {
  report_fd = fd;
  have_crash_stack();
  struct sigaction action{};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP}) {
    sigaction(signal, &action, nullptr);
  }
}

void name_addresses_within(AddressRange artifact) { artifact_addresses = artifact; }

}  // namespace tilefarm::runner
