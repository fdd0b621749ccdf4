// vta-runner: loads the VTA library, then makes a child for every artifact that its parent names.
//
// usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES THREADS

#include <cstdio>
#include <cstdlib>

#include "zygote.h"

int main(int argc, char** argv) {
  const unsigned threads = argc == 6 ? static_cast<unsigned>(std::atoi(argv[5])) : 0;
  if (threads == 0) {
    std::fprintf(stderr,
                 "usage: vta-runner SOCKET_FD LIBRARY MEMORY_NBYTES FILE_NBYTES THREADS\n");
    return 2;
  }
  const tilefarm::runner::SandboxLimits limits{std::strtoull(argv[3], nullptr, 10),
                                               std::strtoull(argv[4], nullptr, 10)};
  return tilefarm::runner::be_zygote(std::atoi(argv[1]), argv[2], limits, threads);
}
