// Dumps that a person can read, and synchronizing by itself before a stream is too long.

#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "runtime.h"

using namespace tilefarm;

namespace {

// What `body` writes to standard error.
template <typename Body>
std::string written_by(const Body& body) {
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  const size_t count = std::fread(text.data(), 1, text.size(), file);
  std::fclose(file);
  return text.substr(0, count);
}

Runtime* recording_runtime = nullptr;

int record_two(void*) {
  const Encoding& encoding = recording_runtime->accelerator().encoding();
  recording_runtime->recording().begin_loop({3, 2, 1, 0});
  for (uint32_t k : {0u, 1u}) {
    recording_runtime->recording().push({UopMode::kAlu, 0, {k, k, 0}, 3, 1, -2}, encoding);
  }
  recording_runtime->recording().end_loop();
  return 0;
}

void dumps_are_readable() {
  Runtime runtime{Config{}};
  recording_runtime = &runtime;
  const DataBuffer* buffer = runtime.accelerator().dram().allocate(4096);
  void* site = nullptr;
  const std::string text = written_by([&] {
    runtime.set_debug(kDumpInstructions | kDumpUops);
    Transfer t;
    t.memory = static_cast<uint32_t>(Memory::kInp);
    t.x = 2;
    t.y = 3;
    t.stride = 4;
    t.x_pad_0 = 1;
    runtime.load(buffer, 5, t);
    runtime.push_dependence(1, 2);
    runtime.pop_dependence(1, 2);
    runtime.push_kernel(UopMode::kAlu, &site, record_two, nullptr, 0);
    runtime.synchronize();
  });
  char dram[24];
  std::snprintf(dram, sizeof dram, "0x%llx",
                static_cast<unsigned long long>(buffer->address / 16 + 5));
  const std::string expected =
      "uop 0: dst 0 src 0 wgt 0\n"
      "uop 1: dst 1 src 1 wgt 0\n"
      "     0 load    load.inp       sram=0 dram=" +
      std::string(dram) +
      " y=3 x=2 stride=4 pad=0,0,1,0 push=compute\n"
      "     1 compute load.uop       sram=0 dram=0x400 y=1 x=2 stride=2 pop=load\n"
      "     2 compute alu.shr.imm    uops=0..2 loops=1x3 dst=0,2 src=0,1 imm=-2\n"
      "     3 store   nop.store.uop  push=compute\n"
      "     4 load    nop.load.inp   push=compute\n"
      "     5 compute nop.load.uop   pop=load,store\n"
      "     6 compute finish\n";
  if (text != expected) std::fprintf(stderr, "%s", text.c_str());
  CHECK(text == expected);
}

// Room for ten instructions, six of which closing may need.
void a_stream_that_is_nearly_full_synchronizes_by_itself() {
  Runtime runtime{Config{}, 10 * kInstructionNbytes};
  const DataBuffer* buffer = runtime.accelerator().dram().allocate(4096);
  Transfer t;
  t.memory = static_cast<uint32_t>(Memory::kInp);
  t.x = t.y = t.stride = 1;
  for (int k = 0; k < 4; ++k) runtime.load(buffer, 0, t);
  CHECK(runtime.accelerator().counters().instructions == 0);
  runtime.load(buffer, 0, t);
  CHECK(runtime.accelerator().counters().instructions == 5 + 4);
  runtime.check_idle();
}

}  // namespace

int main() {
  dumps_are_readable();
  a_stream_that_is_nearly_full_synchronizes_by_itself();
}
