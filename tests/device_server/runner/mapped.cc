// Loads shared objects as a child does, and writes down what the loader made of each.
//
// usage: mapped LIBRARY OBJECT...
//
// Of every OBJECT: a file OBJECT.mapped with the reason why it cannot be loaded; or with an empty
// line, the address that it was loaded at, the lines of /proc/self/maps, an empty line, and the
// memory of the readable ones of them that the object has, one after the other. Children that die
// leave it empty.

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

#include "artifact.h"
#include "failure.h"
#include "sandbox.h"

namespace {

using tilefarm::runner::Artifact;

std::string all_of(int fd) {
  std::string text;
  char block[4096];
  for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;) text.append(block, n);
  return text;
}

void write_all(int fd, const char* from, size_t nbytes) {
  while (nbytes > 0) {
    const ssize_t n = write(fd, from, nbytes);
    if (n <= 0) _exit(3);
    from += n;
    nbytes -= static_cast<size_t>(n);
  }
}

void write_memory(int out, const std::string& maps, uintptr_t base, uintptr_t end) {
  for (size_t at = 0; at < maps.size(); at = maps.find('\n', at) + 1) {
    uintptr_t from = 0, to = 0;
    char rights[5] = {};
    sscanf(maps.c_str() + at, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights);
    if (from < base || from >= end || rights[0] != 'r') continue;
    write_all(out, reinterpret_cast<const char*>(from), to - from);
  }
}

[[noreturn]] void load(const std::string& path) {
  const int out = open((path + ".mapped").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (out < 0 || maps < 0) _exit(2);
  tilefarm::runner::limit_resources({uint64_t{1} << 32, uint64_t{1} << 28, 0, 0});
  std::string words;
  try {
    tilefarm::runner::enter_first_stage(path, {}, [] {});
    const Artifact artifact(path);
    const auto [begin, end] = artifact.addresses();
    const std::string found = all_of(maps);
    words = "\n" + std::to_string(begin) + "\n" + found + "\n";
    write_all(out, words.data(), words.size());
    write_memory(out, found, begin, end);
  } catch (const tilefarm::runner::Failure& failure) {
    words = failure.why + "\n";
    write_all(out, words.data(), words.size());
  }
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) return 1;
  for (int k = 2; k < argc; ++k) {
    const pid_t child = fork();
    if (child == 0) load(argv[k]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (status != 0) std::printf("%s %d\n", argv[k], status);
  }
  return 0;
}
