// vta-runner: loads the VTA library, then makes a child for every artifact that its parent names.
//
// usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES LOAD_SECONDS RUN_SECONDS THREADS

#include <cstdio>
#include <cstdlib>

#include "zygote.h"

int main(int argc, char** argv) {
  const unsigned threads = argc == 8 ? static_cast<unsigned>(std::atoi(argv[7])) : 0;
  if (threads == 0) {
    std::fprintf(stderr,
                 "usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES LOAD_SECONDS"
                 " RUN_SECONDS THREADS\n");
    return 2;
  }
  const auto number = [argv](int at) { return std::strtoull(argv[at], nullptr, 10); };
  const tilefarm::runner::SandboxLimits limits{number(3), number(4), number(5), number(6)};
  return tilefarm::runner::be_zygote(std::atoi(argv[1]), argv[2], limits, threads);
}
