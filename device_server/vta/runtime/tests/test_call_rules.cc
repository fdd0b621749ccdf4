// Both stages of the system-call filter, as the kernel would judge calls of this processor.
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <vector>

#include "call_rules.h"
#include "check.h"
#include "verdict.h"

using tilefarm::runner::FilterProgram;
using tilefarm::runner::kAllow;
using tilefarm::runner::kTrap;
using tilefarm::runner::refuse;

namespace {

constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
constexpr pid_t kSelf = 4242;
constexpr int kDevice = 7;
constexpr int kLast = 512;

// Numbers are spelled out: rules that misname a call are found out.
#if defined(__x86_64__)
constexpr uint32_t kHere = 0xc000003e;
constexpr uint32_t kNeighbours[] = {0x40000003, 0xc00000b7, 0x40000028, 0};  // i386, ARM's two
constexpr int kOpen = 2, kOpenat = 257, kClone = 56, kClone3 = 435;
constexpr int kMap = 9, kProtect = 10, kTgkill = 234, kAsk = 16;
const std::set<int> kRefused = {kAsk, 262};
const std::set<int> kComputing = {0,  1,   3,   5,   8,   11,  12,  13,  14, 15, 17,
                                  19, 20,  24,  25,  28,  35,  39,  46,  47, 60, 96,
                                  98, 131, 186, 202, 219, 228, 230, 231, 309, 318};
// socket, execve, ptrace, kill, fork, vfork, unlink, renameat, mount, prlimit64, bpf, setuid,
// io_uring_setup, shmget, shmat, msgsnd, semop, fcntl, sched_setaffinity, setpriority, setrlimit,
// pkey_mprotect, fchmodat2.
constexpr int kDangerous[] = {41,  59,  101, 62, 57, 58, 87, 264, 165, 302, 321, 105,
                              425, 29,  30,  69, 65, 72, 203, 141, 160, 329, 452};
// What only the loading of an artifact needs: open, openat, newfstatat.
const std::set<int> kOpening = {2, 257, 262};
const std::set<int> kWaiting = {271};  // ppoll
constexpr int kControl = 157, kSeccomp = 317;
#elif defined(__aarch64__)
constexpr uint32_t kHere = 0xc00000b7;
constexpr uint32_t kNeighbours[] = {0x40000028, 0xc000003e, 0};
constexpr int kOpenat = 56, kClone = 220, kClone3 = 435;
constexpr int kMap = 222, kProtect = 226, kTgkill = 131, kAsk = 29;
const std::set<int> kRefused = {kAsk, 79};
const std::set<int> kComputing = {57,  62,  63,  64,  65,  66,  67,  80,  93,  94,  98,
                                  101, 113, 115, 124, 128, 132, 134, 135, 139,
                                  165, 168, 169, 172, 178, 211, 212, 214, 215, 216, 233, 278};
// socket, execve, ptrace, kill, unlinkat, renameat, mount, prlimit64, bpf, setuid, io_uring_setup,
// shmget, shmat, msgsnd, semop, fcntl, sched_setaffinity, setpriority, pkey_mprotect, fchmodat2.
constexpr int kDangerous[] = {198, 221, 117, 129, 35,  38, 40,  261, 280, 146,
                              425, 194, 196, 189, 193, 25, 122, 140, 288, 452};
const std::set<int> kOpening = {56, 79};  // openat, newfstatat
const std::set<int> kWaiting = {73};      // ppoll
constexpr int kControl = 167, kSeccomp = 277;
#elif defined(__arm__)
constexpr uint32_t kHere = 0x40000028;
constexpr uint32_t kNeighbours[] = {0xc00000b7, 0x00000028, 0xc000003e, 0};  // big endian, too
constexpr int kOpen = 5, kOpenat = 322, kClone = 120, kClone3 = 435;
constexpr int kMap = 192, kProtect = 125, kTgkill = 268, kAsk = 54;
const std::set<int> kRefused = {kAsk, 327, 397};
const std::set<int> kComputing = {0,   1,   3,   4,   6,   19,  20,  45,  77,  78,  91,  108, 119,
                                  140, 145, 146, 158, 162, 163, 173, 174, 175, 180, 186, 197, 220,
                                  224, 240, 248, 263, 265, 296, 297, 345, 384, 403, 407, 422};
// socket, execve, ptrace, kill, fork, vfork, creat, unlink, rename, renameat, mount, truncate64,
// fchown32, setuid, setuid32, setgroups32, setresuid32, prlimit64, bpf, clock_settime and
// clock_settime64, utimensat_time64, io_uring_setup, shmget, shmat, msgsnd, semop, fcntl64,
// sched_setaffinity, setpriority, setrlimit, pkey_mprotect, fchmodat2.
constexpr int kDangerous[] = {281, 11,  26,  37,  2,   190, 8,   10,  38,  329, 21,  193,
                              207, 23,  213, 206, 208, 369, 386, 262, 404, 412, 425, 307,
                              305, 301, 298, 221, 241, 97,  75,  394, 452};
const std::set<int> kOpening = {5, 322, 327, 397};  // open, openat, fstatat64, statx
const std::set<int> kWaiting = {336, 414};          // ppoll, ppoll_time64
constexpr int kControl = 172, kSeccomp = 383;
#endif

seccomp_data call(int number, std::initializer_list<uint64_t> arguments = {},
                  uint32_t architecture = kHere) {
  seccomp_data data{};
  data.nr = number;
  data.arch = architecture;
  uint64_t* next = reinterpret_cast<uint64_t*>(&data.args);
  for (uint64_t argument : arguments) *next++ = argument;
  return data;
}

const std::vector<int> kDevices = {kDevice, kDevice + 2};
const FilterProgram first = tilefarm::runner::only_loading(kSelf, kDevices);
const FilterProgram second = tilefarm::runner::only_computing(kSelf, kDevices);

void calls_of_other_architectures_kill() {
  for (const FilterProgram* stage : {&first, &second}) {
    for (uint32_t architecture : kNeighbours) {
      CHECK(verdict(*stage, call(*kComputing.begin(), {}, architecture)) == kKill);
    }
  }
#if defined(__x86_64__)
  for (int number : {0x40000000, 0x40000000 + 41, 0x7fffffff, -1}) {
    CHECK(verdict(first, call(number)) == kKill);
    CHECK(verdict(second, call(number)) == kKill);
  }
  CHECK(verdict(first, call(0x3fffffff)) == kTrap);
#endif
}

void dangerous_calls_are_trapped_at_both_stages() {
  for (int number : kDangerous) {
    CHECK(verdict(first, call(number)) == kTrap);
    CHECK(verdict(second, call(number)) == kTrap);
  }
}

void the_second_stage_is_entered_from_the_first() {
  for (uint64_t operation : {SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL}) {
    CHECK(verdict(first, call(kSeccomp, {operation})) == kAllow);
    CHECK(verdict(second, call(kSeccomp, {operation})) == kTrap);
  }
  CHECK(verdict(first, call(kSeccomp, {SECCOMP_SET_MODE_STRICT})) == kTrap);
}

// Those that depend on arguments are asked about with zeros.
void loading_takes_little_more_than_computing() {
  for (int number = 0; number < kLast; ++number) {
    uint32_t expected = verdict(second, call(number));
    if (kOpening.count(number)) expected = kAllow;
    if (number == kControl) expected = refuse(EPERM);
    CHECK(verdict(first, call(number)) == expected);
  }
}

// O_TMPFILE is nothing without a right to write.
void files_are_opened_for_reading() {
  for (uint64_t flags : {O_RDONLY, O_RDONLY | O_CLOEXEC, O_RDONLY | O_DIRECTORY | O_LARGEFILE}) {
    CHECK(verdict(first, call(kOpenat, {0, 0, flags})) == kAllow);
#if !defined(__aarch64__)
    CHECK(verdict(first, call(kOpen, {0, flags})) == kAllow);
#endif
  }
  for (uint64_t flags :
       {O_WRONLY, O_RDWR, O_CREAT, O_RDONLY | O_TRUNC, O_APPEND, O_RDWR | O_TMPFILE}) {
    CHECK(verdict(first, call(kOpenat, {0, 0, flags})) == kTrap);
#if !defined(__aarch64__)
    CHECK(verdict(first, call(kOpen, {0, flags})) == kTrap);
#endif
  }
  CHECK(verdict(second, call(kOpenat, {0, 0, O_RDONLY})) == kTrap);
}

void no_threads_and_no_processes_begin() {
  for (const FilterProgram* stage : {&first, &second}) {
    CHECK(verdict(*stage, call(kClone, {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                        CLONE_THREAD | CLONE_SYSVSEM})) == kTrap);
    CHECK(verdict(*stage, call(kClone, {CLONE_VM | CLONE_VFORK})) == kTrap);
    CHECK(verdict(*stage, call(kClone3)) == kTrap);
  }
}

void while_loading_code_comes_from_files_alone() {
  constexpr uint64_t kCode = PROT_READ | PROT_EXEC, kData = PROT_READ | PROT_WRITE;
  CHECK(verdict(first, call(kMap, {0, 4096, kCode, MAP_PRIVATE, 3})) == kAllow);
  CHECK(verdict(first, call(kMap, {0, 4096, kCode, MAP_PRIVATE | MAP_ANONYMOUS})) == kTrap);
  CHECK(verdict(first, call(kMap, {0, 4096, kCode | kData, MAP_PRIVATE, 3})) == kTrap);
  CHECK(verdict(first, call(kMap, {0, 4096, kData, MAP_PRIVATE | MAP_ANONYMOUS})) == kAllow);
  CHECK(verdict(first, call(kProtect, {0, 4096, kData})) == kAllow);
  CHECK(verdict(first, call(kProtect, {0, 4096, kCode})) == kTrap);
}

void memory_is_not_made_executable() {
  for (int number : {kMap, kProtect}) {
    CHECK(verdict(second, call(number, {0, 4096, PROT_READ | PROT_WRITE})) == kAllow);
    CHECK(verdict(second, call(number, {PROT_EXEC, PROT_EXEC, PROT_NONE, PROT_EXEC})) == kAllow);
    CHECK(verdict(second, call(number, {0, 4096, PROT_READ | PROT_EXEC})) == kTrap);
    CHECK(verdict(second, call(number, {0, 4096, PROT_EXEC})) == kTrap);
  }
}

void a_child_signals_itself_alone() {
  for (const FilterProgram* stage : {&first, &second}) {
    CHECK(verdict(*stage, call(kTgkill, {kSelf, 1, 6})) == kAllow);
    CHECK(verdict(*stage, call(kTgkill, {kSelf + 1, kSelf, 6})) == kTrap);
  }
}

void drivers_of_open_devices_alone_are_asked() {
  for (const FilterProgram* stage : {&first, &second}) {
    for (int fd : kDevices) CHECK(verdict(*stage, call(kAsk, {uint64_t(fd)})) == kAllow);
    for (int fd : {0, 2, kDevice + 1, -1}) {
      CHECK(verdict(*stage, call(kAsk, {uint64_t(fd), kDevice})) == refuse(EPERM));
    }
  }
  const FilterProgram simulator = tilefarm::runner::only_computing(kSelf, {});
  CHECK(verdict(simulator, call(kAsk, {kDevice})) == refuse(EPERM));
}

// Those that depend on arguments are asked about with zeros.
void nothing_else_computes() {
  for (int number = 0; number < kLast; ++number) {
    uint32_t expected = kTrap;
    if (kComputing.count(number) || number == kMap || number == kProtect) expected = kAllow;
    if (kRefused.count(number)) expected = refuse(EPERM);
    CHECK(verdict(second, call(number)) == expected);
  }
}

void an_accelerator_waits_for_several_and_does_nothing_else_that_computing_does_not() {
  const FilterProgram serving = tilefarm::runner::only_serving(kSelf);
  for (int number = 0; number < kLast; ++number) {
    uint32_t expected = kTrap;
    if (kComputing.count(number) || number == kMap || number == kProtect) expected = kAllow;
    if (kWaiting.count(number)) expected = kAllow;
    if (number == kAsk) expected = refuse(EPERM);
    CHECK(verdict(serving, call(number)) == expected);
  }
  for (int number : {kMap, kProtect}) {
    CHECK(verdict(serving, call(number, {0, 4096, PROT_READ | PROT_EXEC})) == kTrap);
  }
  CHECK(verdict(serving, call(kAsk, {uint64_t(kDevice)})) == refuse(EPERM));
  CHECK(verdict(serving, call(kTgkill, {kSelf + 1, kSelf, 6})) == kTrap);
}

#if defined(__arm__)
void the_processors_own_calls() {
  constexpr int kOwn = 0x0f0000, kBreakpoint = 1, kCacheFlush = 2, kUser26 = 3, kUser32 = 4;
  constexpr int kSetTls = 5, kGetTls = 6;
  for (int number : {kCacheFlush, kSetTls, kGetTls}) {
    CHECK(verdict(first, call(kOwn + number)) == kAllow);
    CHECK(verdict(second, call(kOwn + number)) == kAllow);
  }
  for (int number : {kBreakpoint, kUser26, kUser32}) {
    CHECK(verdict(first, call(kOwn + number)) == kTrap);
    CHECK(verdict(second, call(kOwn + number)) == kTrap);
  }
  CHECK(verdict(second, call(kOwn)) == kTrap);
  CHECK(verdict(second, call(kOwn + kGetTls + 1)) == kTrap);
  CHECK(verdict(second, call(0x900000 + kSetTls)) == kTrap);
}
#endif

}  // namespace

int main() {
  CHECK(tilefarm::runner::knows_calls());
  calls_of_other_architectures_kill();
  dangerous_calls_are_trapped_at_both_stages();
  the_second_stage_is_entered_from_the_first();
  loading_takes_little_more_than_computing();
  while_loading_code_comes_from_files_alone();
  files_are_opened_for_reading();
  no_threads_and_no_processes_begin();
  memory_is_not_made_executable();
  a_child_signals_itself_alone();
  drivers_of_open_devices_alone_are_asked();
  nothing_else_computes();
  an_accelerator_waits_for_several_and_does_nothing_else_that_computing_does_not();
#if defined(__arm__)
  the_processors_own_calls();
#endif
}
