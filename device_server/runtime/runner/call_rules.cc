#include "call_rules.h"

#include "processor_calls.h"

#if defined(TILEFARM_KNOWS_CALLS)

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include <cerrno>

namespace tilefarm::runner {
namespace {

// Numbers that are the same on all architectures but younger than some C libraries' headers.
constexpr int kIoUringSetup = 425, kIoUringEnter = 426, kIoUringRegister = 427;
constexpr int kOpenTree = 428, kMoveMount = 429, kFsopen = 430, kFsconfig = 431, kFsmount = 432;
constexpr int kFspick = 433, kPidfdOpen = 434, kClone3 = 435, kOpenat2 = 437, kPidfdGetfd = 438;
constexpr int kProcessMadvise = 440, kMountSetattr = 442, kMemfdSecret = 447;

constexpr uint32_t kWritingFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

}  // namespace

bool knows_calls() { return true; }

FilterProgram without_dangerous_calls() {
  CallFilter filter;
  filter.on_all({SYS_socket,
                 SYS_socketpair,
                 SYS_connect,
                 SYS_bind,
                 SYS_listen,
                 SYS_accept,
                 SYS_accept4,
                 SYS_execve,
                 SYS_execveat,
                 SYS_ptrace,
                 SYS_kill,
                 SYS_tkill,
                 SYS_unshare,
                 SYS_setns,
                 SYS_mount,
                 SYS_umount2,
                 SYS_pivot_root,
                 SYS_chroot,
                 SYS_bpf,
                 SYS_perf_event_open,
                 SYS_keyctl,
                 SYS_add_key,
                 SYS_reboot,
                 SYS_swapon,
                 SYS_request_key,
                 SYS_swapoff,
                 SYS_init_module,
                 SYS_quotactl,
                 SYS_acct,
                 SYS_delete_module,
                 SYS_settimeofday,
                 SYS_clock_settime,
                 SYS_sethostname,
                 SYS_setdomainname,
                 SYS_kexec_load,
                 SYS_finit_module,
                 SYS_userfaultfd,
                 SYS_personality,
                 SYS_process_vm_readv,
                 SYS_process_vm_writev,
                 SYS_name_to_handle_at,
                 SYS_open_by_handle_at,
                 SYS_prlimit64,
                 SYS_setrlimit,
                 SYS_setuid,
                 SYS_setgid,
                 SYS_setresuid,
                 SYS_setresgid,
                 SYS_setgroups,
                 SYS_capset},
                kTrap);
  filter.on_all({kIoUringSetup, kIoUringEnter, kIoUringRegister, kOpenTree, kMoveMount, kFsopen,
                 kFsconfig, kFsmount, kFspick, kPidfdOpen, kPidfdGetfd, kOpenat2, kProcessMadvise,
                 kMountSetattr, kMemfdSecret},
                kTrap);
  filter.on_all({SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_mkdirat, SYS_linkat, SYS_symlinkat,
                 SYS_mknodat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_truncate,
                 SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr},
                kTrap);
  filter.on_all(kOwnDangerous, kTrap);
  for (int call : kOpen) filter.on_bits(call, 1, kWritingFlags, kTrap, kAllow);
  filter.on_bits(SYS_openat, 2, kWritingFlags, kTrap, kAllow);
  // A C library falls back to clone, whose flags a filter can see.
  filter.on(kClone3, refuse(ENOSYS));
  filter.on_bits(SYS_clone, 0, CLONE_THREAD, kAllow, kTrap);
  return filter.program(kArchitecture, kForeignCalls, kAllow);
}

FilterProgram only_computing(pid_t self, const std::vector<int>& devices) {
  CallFilter filter;
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
  filter.on_bits(kMap, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_bits(SYS_mprotect, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_any_of(SYS_tgkill, 0, {static_cast<uint32_t>(self)}, kAllow, kTrap);
  // What printf asks of a terminal; it copes with a refusal.
  filter.on_any_of(SYS_ioctl, 0, {devices.begin(), devices.end()}, kAllow, refuse(EPERM));
  filter.on_all(kStat, refuse(EPERM));
  return filter.program(kArchitecture, kForeignCalls, kTrap);
}

}  // namespace tilefarm::runner

#else

namespace tilefarm::runner {

bool knows_calls() { return false; }
FilterProgram without_dangerous_calls() { return {}; }
FilterProgram only_computing(pid_t, const std::vector<int>&) { return {}; }

}  // namespace tilefarm::runner

#endif
