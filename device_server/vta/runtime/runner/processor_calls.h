// How the system calls of this processor differ from those of others.
#ifndef TILEFARM_RUNNER_PROCESSOR_CALLS_H_
#define TILEFARM_RUNNER_PROCESSOR_CALLS_H_

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <initializer_list>

#if defined(__x86_64__)
#define TILEFARM_KNOWS_CALLS

namespace tilefarm::runner {

constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignCalls = 0x40000000;  // from here on: x32
constexpr int kMap = SYS_mmap;
constexpr std::initializer_list<int> kOpen = {SYS_open};
constexpr std::initializer_list<int> kOwnComputing = {};
constexpr std::initializer_list<int> kStat = {SYS_newfstatat};
constexpr std::initializer_list<int> kPoll = {SYS_ppoll};

}  // namespace tilefarm::runner

#elif defined(__aarch64__)
#define TILEFARM_KNOWS_CALLS

namespace tilefarm::runner {

constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeignCalls = 0;
constexpr int kMap = SYS_mmap;
constexpr std::initializer_list<int> kOpen = {};
constexpr std::initializer_list<int> kOwnComputing = {};
constexpr std::initializer_list<int> kStat = {SYS_newfstatat};
constexpr std::initializer_list<int> kPoll = {SYS_ppoll};

}  // namespace tilefarm::runner

// A kernel that also takes the calls of the old ABI has no filters.
#elif defined(__arm__) && defined(__ARM_EABI__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TILEFARM_KNOWS_CALLS

namespace tilefarm::runner {

// Numbers that are younger than some C libraries' headers: times of 64 bits.
constexpr int kClockGettime64 = 403, kClockNanosleepTime64 = 407, kPpollTime64 = 414,
              kFutexTime64 = 422;
// The processor's own calls, which have no SYS_ names.
constexpr int kCacheFlush = 0x0f0002, kSetTls = 0x0f0005, kGetTls = 0x0f0006;

constexpr uint32_t kArchitecture = AUDIT_ARCH_ARM;
constexpr uint32_t kForeignCalls = 0;
constexpr int kMap = SYS_mmap2;
constexpr std::initializer_list<int> kOpen = {SYS_open};
// A C library tries the call with times of 64 bits and, where the kernel lacks it, that of old.
constexpr std::initializer_list<int> kOwnComputing = {
    SYS__llseek,   SYS_fstat64, kFutexTime64, kClockGettime64, kClockNanosleepTime64,
    SYS_sigreturn, kCacheFlush, kSetTls,      kGetTls};
constexpr std::initializer_list<int> kStat = {SYS_fstatat64, SYS_statx};
constexpr std::initializer_list<int> kPoll = {SYS_ppoll, kPpollTime64};

}  // namespace tilefarm::runner

#endif

#endif  // TILEFARM_RUNNER_PROCESSOR_CALLS_H_
