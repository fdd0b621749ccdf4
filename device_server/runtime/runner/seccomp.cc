#include "seccomp.h"

#if defined(__x86_64__) || defined(__aarch64__)

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tilefarm::runner {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignCallBit = 0x40000000;  // x32 calls on x86-64
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t kTrap = SECCOMP_RET_TRAP;
constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

// Numbers that are the same on all architectures but younger than some C libraries' headers.
constexpr int kIoUringSetup = 425, kIoUringEnter = 426, kIoUringRegister = 427;
constexpr int kOpenTree = 428, kMoveMount = 429, kFsopen = 430, kFsconfig = 431, kFsmount = 432;
constexpr int kFspick = 433, kPidfdOpen = 434, kClone3 = 435, kOpenat2 = 437, kPidfdGetfd = 438;
constexpr int kProcessMadvise = 440, kMountSetattr = 442, kMemfdSecret = 447;

// Says what becomes of which call, one rule a call. A binary search finds the rule: the kernel tries
// a filter on every number that there is when it is installed, in every child anew.
class Filter {
 public:
  void on(int call, uint32_t action) { rule(call, {BPF_STMT(BPF_RET | BPF_K, action)}); }

  void on_all(std::initializer_list<int> calls, uint32_t action) {
    for (int call : calls) on(call, action);
  }

  // One action when any bit of `mask` is set in an argument, another when none is.
  void on_bits(int call, int argument, uint32_t mask, uint32_t any, uint32_t none) {
    rule(call, {load_argument(argument), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, any), BPF_STMT(BPF_RET | BPF_K, none)});
  }

  void on_equal(int call, int argument, uint32_t value, uint32_t equal, uint32_t other) {
    rule(call, {load_argument(argument), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, equal), BPF_STMT(BPF_RET | BPF_K, other)});
  }

  bool install(uint32_t otherwise) {
    std::vector<sock_filter> code = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#if defined(__x86_64__)
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kForeignCallBit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
#endif
    };
    std::sort(rules_.begin(), rules_.end(),
              [](const Rule& a, const Rule& b) { return a.call < b.call; });
    search(code, rules_.data(), rules_.data() + rules_.size(), otherwise);
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  struct Rule {
    uint32_t call;
    std::vector<sock_filter> code;  // always returns
  };
  static constexpr ptrdiff_t kFew = 3;  // these are tried one after the other

  void rule(int call, std::vector<sock_filter> code) {
    rules_.push_back({static_cast<uint32_t>(call), std::move(code)});
  }

  // The low word; both architectures are little endian.
  static sock_filter load_argument(int argument) {
    const size_t offset = offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument);
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  }

  static void search(std::vector<sock_filter>& code, const Rule* begin, const Rule* end,
                     uint32_t otherwise) {
    if (end - begin <= kFew) {
      for (const Rule* rule = begin; rule != end; ++rule) {
        const auto length = static_cast<uint8_t>(rule->code.size());
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, length));
        code.insert(code.end(), rule->code.begin(), rule->code.end());
      }
      code.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
      return;
    }
    const Rule* middle = begin + (end - begin) / 2;
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, middle->call, 0, 1));
    const size_t jump = code.size();  // conditional ones reach 255 instructions, this one all
    code.push_back(BPF_STMT(BPF_JMP | BPF_JA, 0));
    search(code, begin, middle, otherwise);
    code[jump].k = static_cast<uint32_t>(code.size() - jump - 1);
    search(code, middle, end, otherwise);
  }

  std::vector<Rule> rules_;
};

constexpr uint32_t kWritingFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;

// Calls of old that newer architectures do not have.
void forbid_old_calls([[maybe_unused]] Filter& filter) {
#if defined(__x86_64__)
  filter.on_all(
      {SYS_fork,   SYS_vfork,     SYS_creat, SYS_unlink, SYS_rename,     SYS_mkdir, SYS_rmdir,
       SYS_link,   SYS_symlink,   SYS_chmod, SYS_chown,  SYS_lchown,     SYS_mknod, SYS_utime,
       SYS_utimes, SYS_futimesat, SYS_iopl,  SYS_ioperm, SYS_modify_ldt, SYS_uselib},
      kTrap);
  filter.on_bits(SYS_open, 1, kWritingFlags, kTrap, kAllow);
#endif
}

}  // namespace

bool seccomp_available() {
  uint32_t action = SECCOMP_RET_TRAP;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool forbid_dangerous_calls() {
  Filter filter;
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
  filter.on_all({SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_mknodat,
                 SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_truncate, SYS_utimensat,
                 SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr},
                kTrap);
  forbid_old_calls(filter);
  filter.on_bits(SYS_openat, 2, kWritingFlags, kTrap, kAllow);
  // A C library falls back to clone, whose flags a filter can see.
  filter.on(kClone3, refuse(ENOSYS));
  filter.on_bits(SYS_clone, 0, CLONE_THREAD, kAllow, kTrap);
  return filter.install(kAllow);
}

bool allow_only_computing() {
  Filter filter;
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
                 SYS_rt_sigreturn,
                 SYS_rt_sigprocmask,
                 SYS_rt_sigaction,
                 SYS_sigaltstack,
                 SYS_restart_syscall,
                 SYS_exit,
                 SYS_exit_group},
                kAllow);
  filter.on_bits(SYS_mmap, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_bits(SYS_mprotect, 2, PROT_EXEC, kTrap, kAllow);
  filter.on_equal(SYS_tgkill, 0, static_cast<uint32_t>(getpid()), kAllow, kTrap);
  // What printf asks of a terminal; it copes with a refusal.
  filter.on_all({SYS_ioctl, SYS_newfstatat}, refuse(EPERM));
  return filter.install(kTrap);
}

}  // namespace tilefarm::runner

#else  // Other processors number their calls in other ways.

namespace tilefarm::runner {

bool seccomp_available() { return false; }
bool forbid_dangerous_calls() { return false; }
bool allow_only_computing() { return false; }

}  // namespace tilefarm::runner

#endif
