#include "call_rules.h"

#include "processor_calls.h"

#if defined(TILEFARM_KNOWS_CALLS)

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

namespace tilefarm::runner {
namespace {

constexpr uint32_t kWritingFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

// What both stages have in common: open descriptors, memory, time, waiting, signals of the process
// to itself, and the drivers of open devices.
void allow_computing(CallFilter& filter, pid_t self, const std::vector<int>& devices) {
  filter.on_all({SYS_read,
                 SYS_write,
                 SYS_readv,
                 SYS_writev,
                 SYS_pread64,
                 SYS_recvmsg,
                 SYS_sendmsg,
                 SYS_close,
                 SYS_lseek,
                 SYS_fstat,
                 SYS_munmap,
                 SYS_mremap,
                 SYS_madvise,
                 SYS_brk,
                 SYS_futex,
                 SYS_clock_gettime,
                 SYS_clock_nanosleep,
                 SYS_nanosleep,
                 SYS_gettimeofday,
                 SYS_sched_yield,
                 SYS_getpid,
                 SYS_gettid,
                 SYS_getrandom,
                 SYS_getrusage,
                 SYS_getcpu,
                 SYS_rt_sigreturn,
                 SYS_rt_sigprocmask,
                 SYS_rt_sigaction,
                 SYS_sigaltstack,
                 SYS_restart_syscall,
                 SYS_exit,
                 SYS_exit_group},
                kAllow);
  filter.on_all(kOwnComputing, kAllow);
  filter.on_any_of(SYS_tgkill, 0, {static_cast<uint32_t>(self)}, kAllow, kTrap);
  // What printf asks of a terminal; it copes with a refusal.
  filter.on_any_of(SYS_ioctl, 0, {devices.begin(), devices.end()}, kAllow, refuse(EPERM));
  filter.on_bits(SYS_mprotect, 2, PROT_EXEC, kTrap, kAllow);
}

}  // namespace

bool knows_calls() { return true; }

FilterProgram only_loading(pid_t self, const std::vector<int>& devices) {
  CallFilter filter;
  allow_computing(filter, self, devices);
  for (int call : kOpen) filter.on_bits(call, 1, kWritingFlags, kTrap, kAllow);
  filter.on_bits(SYS_openat, 2, kWritingFlags, kTrap, kAllow);
  filter.on_bits_with(kMap, 2, PROT_EXEC, {{2, PROT_WRITE}, {3, MAP_ANONYMOUS}}, kTrap, kAllow);
  filter.on_all(kStat, kAllow);
  // The second stage is entered from the first one.
  filter.on_any_of(SYS_seccomp, 0, {SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL}, kAllow,
                   kTrap);
  // Younger C libraries name their memory, and cope with a refusal.
  filter.on(SYS_prctl, refuse(EPERM));
  return filter.program(kArchitecture, kForeignCalls, kTrap);
}

FilterProgram only_computing(pid_t self, const std::vector<int>& devices) {
  CallFilter filter;
  allow_computing(filter, self, devices);
  filter.on_bits(kMap, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_all(kStat, refuse(EPERM));
  return filter.program(kArchitecture, kForeignCalls, kTrap);
}

FilterProgram only_serving(pid_t self) {
  CallFilter filter;
  allow_computing(filter, self, {});
  filter.on_bits(kMap, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_all(kPoll, kAllow);
  return filter.program(kArchitecture, kForeignCalls, kTrap);
}

}  // namespace tilefarm::runner

#else

namespace tilefarm::runner {

bool knows_calls() { return false; }
FilterProgram only_loading(pid_t, const std::vector<int>&) { return {}; }
FilterProgram only_computing(pid_t, const std::vector<int>&) { return {}; }
FilterProgram only_serving(pid_t) { return {}; }

}  // namespace tilefarm::runner

#endif
