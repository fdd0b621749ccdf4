// An accelerator behind a socket: what it computes and counts, and what it says to who lies.

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "remote/accelerator_server.h"
#include "remote/remote_accelerator.h"
#include "runtime.h"

using tilefarm::AcceleratorServer;
using tilefarm::DataBuffer;
using tilefarm::ErrorState;
using tilefarm::Fault;
using tilefarm::RemoteAccelerator;
using tilefarm::Request;
using tilefarm::RequestKind;
using tilefarm::Runtime;
using tilefarm::Transfer;
using tilefarm::UopMode;
using tilefarm::UopPush;
using tilefarm::Word;

namespace {

constexpr uint32_t kAcc = 3, kOut = 4, kTileNbytes = 64;
constexpr uint64_t kArenaNbytes = uint64_t{64} << 20;
constexpr int kClient = 0, kServer = 1;

Runtime* recorder;  // of the kernel that is being recorded

int record_add(void* closure) {
  int32_t value;
  std::memcpy(&value, closure, sizeof value);
  const UopPush push{UopMode::kAlu, 0, {0, 0, 0}, 2, 1, value};
  recorder->recording().push(push, recorder->accelerator().encoding());
  return 0;
}

// Adds a value to the tile of int32 in `from`; the low bytes go to `to`.
void add(Runtime& runtime, DataBuffer* from, DataBuffer* to, int32_t value, void** site) {
  recorder = &runtime;
  runtime.load(from, 0, Transfer{1, 1, 1, 0, 0, 0, 0, 0, kAcc});
  runtime.push_kernel(UopMode::kAlu, site, record_add, &value, sizeof value);
  runtime.push_dependence(2, 3);
  runtime.pop_dependence(2, 3);
  runtime.store(to, 0, Transfer{1, 1, 1, 0, 0, 0, 0, 0, kOut});
  runtime.synchronize();
}

// A client's runtime and, in a thread, the accelerator that serves it.
class Pair {
 public:
  explicit Pair(size_t most_entries = AcceleratorServer::kMostEntries)
      : arena_(memfd_create("arena", 0)), server(accelerator, most_entries) {
    CHECK(ftruncate(arena_, kArenaNbytes) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    client.accelerator().dram().share({arena_, kArenaNbytes});
    accelerator.accelerator().dram().share({arena_, kArenaNbytes});
    client.connect(std::make_unique<RemoteAccelerator>(ends[kClient]));
    thread_ = std::thread([this] { serve(); });
  }
  ~Pair() {
    finish();
    close(arena_);
  }
  void finish() {
    if (!thread_.joinable()) return;
    close(ends[kClient]);
    thread_.join();
    close(ends[kServer]);
  }

 private:
  int arena_;
  Runtime accelerator{tilefarm::Config{}};
  std::thread thread_;

 public:
  int ends[2] = {-1, -1};
  Runtime client{tilefarm::Config{}};
  AcceleratorServer server;
  ErrorState errors;
  bool goes_on = true;

 private:
  void serve() {
    while ((goes_on = server.receive(ends[kServer]))) {
      try {
        if (errors.ok()) server.obey();
      } catch (const Fault& fault) {
        errors.record(fault);
      }
      if (!server.answer(ends[kServer], errors)) return;
    }
  }
};

void ask(const Pair& pair, const Request& request, const std::vector<uint8_t>& more = {}) {
  CHECK(write(pair.ends[kClient], &request, sizeof request) == sizeof request);
  CHECK(write(pair.ends[kClient], more.data(), more.size()) == ssize_t(more.size()));
}

void it_computes_and_counts_what_the_library_does_itself() {
  void *site = nullptr, *local_site = nullptr;
  Runtime local{tilefarm::Config{}};
  DataBuffer* local_from = local.allocate(kTileNbytes);
  DataBuffer* local_to = local.allocate(kTileNbytes / 4);
  local.begin_call(false);
  add(local, local_from, local_to, 5, &local_site);
  Pair pair;
  DataBuffer* from = pair.client.allocate(kTileNbytes);
  DataBuffer* to = pair.client.allocate(kTileNbytes / 4);
  CHECK(from->address == local_from->address);
  for (int call = 0; call < 2; ++call) {
    from->host[0] = static_cast<uint8_t>(call);
    pair.client.begin_call(false);
    add(pair.client, from, to, 5, &site);
    pair.client.check_idle();
    CHECK(to->host[0] == 5 + call && to->host[1] == 5);
  }
  CHECK(pair.client.accelerator().counters().cycles == 0);
  pair.finish();
  CHECK(pair.errors.ok());
  const auto& calls = pair.server.calls();
  CHECK(calls.size() == 1 && calls[0].calls == 2);
  const auto expected = local.accelerator().counters();
  CHECK(std::memcmp(&calls[0].each, &expected, sizeof expected) == 0);
}

void memory_is_zero_again_for_the_next_buffer() {
  Pair pair;
  DataBuffer* first = pair.client.allocate(kTileNbytes);
  const uint64_t address = first->address;
  std::memset(first->host, 7, kTileNbytes);
  pair.client.release(first);
  DataBuffer* second = pair.client.allocate(kTileNbytes);
  CHECK(second->address == address && second->host[0] == 0);
}

void what_is_written_before_the_request_is_read_is_kept() {
  void* site = nullptr;
  Pair pair;
  DataBuffer* to = pair.client.allocate(kTileNbytes / 4);
  pair.client.release(pair.client.allocate(kTileNbytes));
  DataBuffer* from = pair.client.allocate(kTileNbytes);
  std::memset(from->host, 1, 1);
  pair.client.begin_call(false);
  add(pair.client, from, to, 1, &site);
  CHECK(to->host[0] == 2);
}

void calls_that_differ_are_told_apart() {
  void* site = nullptr;
  Pair pair;
  DataBuffer* from = pair.client.allocate(kTileNbytes);
  DataBuffer* to = pair.client.allocate(kTileNbytes / 4);
  for (int runs : {1, 2, 0, 0, 1}) {
    pair.client.begin_call(false);
    for (int run = 0; run < runs; ++run) add(pair.client, from, to, 1, &site);
    pair.client.check_idle();
  }
  pair.finish();
  std::vector<uint64_t> calls, uops;
  for (const auto& entry : pair.server.calls()) {
    calls.push_back(entry.calls);
    uops.push_back(entry.each.alu_uops);
  }
  CHECK((calls == std::vector<uint64_t>{1, 1, 2, 1}));
  CHECK((uops == std::vector<uint64_t>{1, 2, 0, 1}));
}

void an_account_has_an_end() {
  void* site = nullptr;
  Pair pair(2);
  DataBuffer* from = pair.client.allocate(kTileNbytes);
  DataBuffer* to = pair.client.allocate(kTileNbytes / 4);
  for (int runs : {1, 0, 1, 0}) {
    pair.client.begin_call(false);
    for (int run = 0; run < runs; ++run) add(pair.client, from, to, 1, &site);
    pair.client.check_idle();
  }
  pair.finish();
  CHECK(pair.errors.status() == TILEFARM_VTA_NO_MEMORY);
  CHECK(pair.errors.why() == "2 calls that differ from the one before");
  CHECK(pair.server.calls().size() == 2);
}

void a_failure_is_told_to_both_sides_and_nothing_runs_after_it() {
  void* site = nullptr;
  Pair pair;
  DataBuffer* from = pair.client.allocate(kTileNbytes);
  DataBuffer* to = pair.client.allocate(kTileNbytes / 4);
  pair.client.begin_call(false);
  pair.client.load(from, 100, Transfer{1, 1, 1, 0, 0, 0, 0, 0, kAcc});
  const std::string why = fault_of(TILEFARM_VTA_DRAM_RANGE, [&] { pair.client.synchronize(); });
  pair.client.begin_call(false);
  CHECK(fault_of(TILEFARM_VTA_DRAM_RANGE, [&] { add(pair.client, from, to, 1, &site); }) == why);
  pair.finish();
  CHECK(pair.errors.why() == why && to->host[0] == 0);
}

void tokens_that_are_left_are_seen_on_both_sides() {
  Pair pair;
  pair.client.begin_call(false);
  pair.client.push_dependence(2, 1);
  pair.client.synchronize();
  CHECK(fault_of(TILEFARM_VTA_TOKENS_LEFT, [&] { pair.client.check_idle(); }) ==
        "tokens left over: 1 compute->load");
  pair.client.begin_call(false);
  pair.client.check_idle();
  pair.finish();
  CHECK(pair.errors.why() == "tokens left over: 1 compute->load");
}

void no_stream_runs_outside_of_a_call() {
  Pair pair;
  CHECK_FAULT(TILEFARM_VTA_BAD_ARGUMENT, pair.client.synchronize());
}

void nonsense_ends_the_connection() {
  const std::vector<Request> nonsense = {{RequestKind{0}, 0, 0},
                                         {RequestKind{5}, 0, 0},
                                         {RequestKind::kRun, UINT32_MAX, 0},
                                         {RequestKind::kRun, 0, UINT64_MAX},
                                         {RequestKind::kRun, 1, 1}};
  for (const Request& request : nonsense) {
    Pair pair;
    ask(pair, request, {1, 2, 3});
    pair.finish();
    CHECK(!pair.goes_on && pair.server.calls().empty());
  }
}

void buffers_that_are_none_are_refused() {
  for (const Request& request :
       {Request{RequestKind::kRelease, 0, 0x1000}, Request{RequestKind::kRelease, 0, UINT64_MAX},
        Request{RequestKind::kAllocate, 0, UINT64_MAX},
        Request{RequestKind::kAllocate, 0, kArenaNbytes}}) {
    Pair pair;
    ask(pair, request);
    pair.finish();
    CHECK(!pair.errors.ok());
  }
}

void nothing_is_left_for_the_next_process() {
  void* site = nullptr;
  Runtime runtime{tilefarm::Config{}};
  uint64_t addresses[2];
  for (uint64_t& address : addresses) {
    const int arena = memfd_create("arena", 0);
    CHECK(ftruncate(arena, kArenaNbytes) == 0);
    runtime.begin_anew({arena, kArenaNbytes});
    CHECK(runtime.accelerator().dram().occupied().empty());
    CHECK(runtime.accelerator().counters().instructions == 0);
    CHECK(runtime.accelerator().timeline().empty());
    CHECK(runtime.accelerator().describe_tokens().empty());
    DataBuffer* from = runtime.allocate(kTileNbytes);
    DataBuffer* to = runtime.allocate(kTileNbytes / 4);
    address = from->address;
    CHECK(from->host[0] == 0);
    from->host[0] = 1;
    runtime.accelerator().record_timeline(true);
    runtime.push_dependence(2, 1);
    add(runtime, from, to, 1, &site);
    CHECK(to->host[0] == 2);
    CHECK(!runtime.accelerator().describe_tokens().empty());
    close(arena);
  }
  CHECK(addresses[0] == addresses[1]);
}

void who_has_gone_is_lost() {
  Pair pair;
  shutdown(pair.ends[kServer], SHUT_RDWR);
  pair.client.begin_call(false);
  CHECK_FAULT(TILEFARM_VTA_LOST, pair.client.synchronize());
}

}  // namespace

int main() {
  it_computes_and_counts_what_the_library_does_itself();
  memory_is_zero_again_for_the_next_buffer();
  what_is_written_before_the_request_is_read_is_kept();
  calls_that_differ_are_told_apart();
  an_account_has_an_end();
  a_failure_is_told_to_both_sides_and_nothing_runs_after_it();
  tokens_that_are_left_are_seen_on_both_sides();
  no_stream_runs_outside_of_a_call();
  nonsense_ends_the_connection();
  buffers_that_are_none_are_refused();
  nothing_is_left_for_the_next_process();
  who_has_gone_is_lost();
}
