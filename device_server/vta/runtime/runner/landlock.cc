#include "landlock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tilefarm::runner {
namespace {

// The kernel's interface (linux/landlock.h), spelled out because older headers lack its later
// parts.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kVersionFlag = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kReadFile = uint64_t{1} << 2;

struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

struct __attribute__((packed)) PathAttributes {
  uint64_t allowed_access;
  int32_t parent_fd;
};

// Rights on files that each version of the interface knows.
uint64_t file_rights(int abi) {
  int bits = 13;
  if (abi >= 2) bits = 14;
  if (abi >= 3) bits = 15;
  if (abi >= 5) bits = 16;
  return (uint64_t{1} << bits) - 1;
}

size_t attribute_nbytes(int abi) {
  if (abi >= 6) return sizeof(RulesetAttributes);
  return abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

bool add_path(int ruleset, const std::string& path) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return true;  // loading it will say what is wrong
  const PathAttributes attributes{kReadFile, fd};
  // A file in memory lies in no file system that rules are about, and may be read without one.
  const bool added =
      syscall(kAddRule, ruleset, kPathBeneath, &attributes, 0) == 0 || errno == EBADFD;
  close(fd);
  return added;
}

}  // namespace

int landlock_abi() {
  const long abi = syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

bool allow_reading_only(const std::string& path) {
  const int abi = landlock_abi();
  if (abi == 0) return true;
  const RulesetAttributes attributes{file_rights(abi), 3, 3};
  const auto ruleset =
      static_cast<int>(syscall(kCreateRuleset, &attributes, attribute_nbytes(abi), 0));
  if (ruleset < 0) return false;
  const bool applied = add_path(ruleset, path) && syscall(kRestrictSelf, ruleset, 0) == 0;
  close(ruleset);
  return applied;
}

}  // namespace tilefarm::runner
