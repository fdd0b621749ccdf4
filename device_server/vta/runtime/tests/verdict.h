// What the kernel does with a call under a filter: its program, interpreted.
#ifndef TILEFARM_TESTS_VERDICT_H_
#define TILEFARM_TESTS_VERDICT_H_

#include <cstddef>
#include <cstring>

#include "call_filter.h"
#include "check.h"

// Only the instructions that the kernel takes and filters have; any other fails the test.
inline uint32_t verdict(const tilefarm::runner::FilterProgram& program, const seccomp_data& call) {
  uint32_t word = 0;
  for (size_t at = 0; at < program.size();) {
    const sock_filter& step = program[at++];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        CHECK(step.k % sizeof word == 0 && step.k + sizeof word <= sizeof call);
        std::memcpy(&word, reinterpret_cast<const char*>(&call) + step.k, sizeof word);
        break;
      case BPF_JMP | BPF_JA: at += step.k; break;
      case BPF_JMP | BPF_JEQ | BPF_K: at += word == step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JGE | BPF_K: at += word >= step.k ? step.jt : step.jf; break;
      case BPF_JMP | BPF_JSET | BPF_K: at += (word & step.k) != 0 ? step.jt : step.jf; break;
      case BPF_RET | BPF_K: return step.k;
      default: CHECK(!"an instruction that filters have");
    }
  }
  CHECK(!"an end");
  return 0;
}

#endif  // TILEFARM_TESTS_VERDICT_H_
