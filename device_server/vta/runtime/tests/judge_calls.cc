// Says what each stage of the filter does with calls of this processor:
//
//   judge_calls PROCESS NUMBER[,ARGUMENT...]...
//
// A line for each: the first stage's action and the second's, in hexadecimal.
#include <linux/audit.h>

#include <cstdio>
#include <cstdlib>

#include "call_rules.h"
#include "processor_calls.h"
#include "verdict.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const pid_t process = std::atoi(argv[1]);
  const auto first = tilefarm::runner::only_loading(process, {});
  const auto second = tilefarm::runner::only_computing(process, {});
  for (int k = 2; k < argc; ++k) {
    char* rest = argv[k];
    seccomp_data call{};
    call.arch = tilefarm::runner::kArchitecture;
    call.nr = static_cast<int>(std::strtol(rest, &rest, 0));
    for (int argument = 0; *rest == ',' && argument < 6; ++argument) {
      call.args[argument] = std::strtoull(rest + 1, &rest, 0);
    }
    if (*rest != '\0') return 2;
    std::printf("%08x %08x\n", verdict(first, call), verdict(second, call));
  }
}
