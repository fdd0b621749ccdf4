#include "run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace tilefarm::runner {
namespace {

enum class Role : uint8_t { kConstant = 0, kInput = 1, kOutput = 2, kScratch = 3 };

double now_seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// A file in memory; must be at least as long as what is asked of it.
class Mapping {
 public:
  Mapping(int fd, size_t nbytes, bool writable) : nbytes_(nbytes) {
    if (nbytes == 0) return;
    const off_t length = lseek(fd, 0, SEEK_END);
    if (length < 0 || static_cast<size_t>(length) < nbytes) {
      fail(FailureKind::kProtocol, "a buffer's file is too short");
    }
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* map = mmap(nullptr, nbytes, protection, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) fail(FailureKind::kMemory, "no room to map a buffer's contents");
    data_ = static_cast<uint8_t*>(map);
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, nbytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  uint8_t* data() const { return data_; }

 private:
  size_t nbytes_;
  uint8_t* data_ = nullptr;
};

struct Buffer {
  Role role = Role::kScratch;
  size_t nbytes = 0;
  void* handle = nullptr;
  std::unique_ptr<Mapping> content;  // of a constant or an input
  uint8_t* results = nullptr;        // of an output: all samples
};

struct Request {
  std::string entry;
  uint32_t samples = 1, repeats = 0;
  bool timeline = false;
  std::vector<Buffer> buffers;
  std::unique_ptr<Mapping> results;
};

void map_results(Request& request, int fd) {
  size_t nbytes = 0;
  for (const Buffer& b : request.buffers) {
    if (b.role == Role::kOutput) nbytes += b.nbytes * request.samples;
  }
  request.results = std::make_unique<Mapping>(fd, nbytes, true);
  uint8_t* next = request.results->data();
  for (Buffer& b : request.buffers) {
    if (b.role != Role::kOutput) continue;
    b.results = next;
    next += b.nbytes * request.samples;
  }
}

Request take_request(Frame& frame) {
  Request request;
  request.entry = frame.take_text();
  request.samples = frame.take<uint32_t>();
  request.repeats = frame.take<uint32_t>();
  request.timeline = frame.take<uint8_t>() != 0;
  request.buffers.resize(frame.take<uint32_t>());
  size_t next_descriptor = 0;
  for (Buffer& b : request.buffers) {
    b.role = static_cast<Role>(frame.take<uint8_t>());
    b.nbytes = frame.take<uint64_t>();
    const bool has_content = frame.take<uint8_t>() != 0;
    if (!has_content) continue;
    if (next_descriptor >= frame.descriptors.size()) fail(FailureKind::kProtocol, "no descriptor");
    const size_t count = b.role == Role::kInput ? request.samples : 1;
    const int fd = frame.descriptors[next_descriptor++].get();
    b.content = std::make_unique<Mapping>(fd, b.nbytes * count, false);
  }
  if (next_descriptor >= frame.descriptors.size()) fail(FailureKind::kProtocol, "no descriptor");
  map_results(request, frame.descriptors[next_descriptor].get());
  return request;
}

// Everything that calls need, and what they gave.
class Session {
 public:
  Session(Request& request, VtaLibrary& library, Entry entry)
      : request_(request), library_(library), entry_(entry) {
    for (Buffer& b : request.buffers) {
      b.handle = library.allocate(b.nbytes);
      handles_.push_back(b.handle);
      fill_once(b);
    }
    offsets_.resize(handles_.size(), 0);
  }

  ~Session() {
    for (void* handle : handles_) library_.release(handle);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void run_samples() {
    for (uint32_t s = 0; s < request_.samples; ++s) {
      call(s, request_.repeats == 0 && s + 1 == request_.samples);
      sample_cycles_.push_back(library_.counters().cycles);
      for (const Buffer& b : request_.buffers) {
        if (b.role == Role::kOutput)
          library_.copy_out(b.results + s * b.nbytes, b.handle, b.nbytes);
      }
    }
  }

  void run_repeats() {
    for (uint32_t r = 0; r < request_.repeats; ++r) {
      seconds_.push_back(call(request_.samples - 1, r + 1 == request_.repeats));
      for (const Buffer& b : request_.buffers) require_same_output(b);
    }
  }

  Reply reply(double run_seconds) const {
    Reply reply(ReplyKind::kDone);
    reply.put(run_seconds).put(library_.counters());
    reply.put(static_cast<uint32_t>(sample_cycles_.size()));
    for (uint64_t cycles : sample_cycles_) reply.put(cycles);
    reply.put(static_cast<uint32_t>(seconds_.size()));
    for (double seconds : seconds_) reply.put(seconds);
    const auto events = request_.timeline ? library_.timeline() : std::vector<tilefarm_vta_event>{};
    reply.put(static_cast<uint32_t>(events.size()));
    for (const tilefarm_vta_event& e : events) {
      reply.put(static_cast<uint8_t>(e.module)).put(e.begin_cycle).put(e.end_cycle);
      reply.put_text(e.name);
    }
    return reply;
  }

 private:
  void fill_once(const Buffer& b) {
    if (b.role == Role::kConstant && b.content) {
      library_.copy_in(b.handle, b.content->data(), b.nbytes);
    }
    if (b.role == Role::kOutput) {
      const std::vector<uint8_t> zeros(b.nbytes);
      library_.copy_in(b.handle, zeros.data(), b.nbytes);
    }
  }

  // Host seconds of the entry alone.
  double call(uint32_t sample, bool last) {
    for (const Buffer& b : request_.buffers) {
      if (b.role != Role::kInput || !b.content) continue;
      library_.copy_in(b.handle, b.content->data() + sample * b.nbytes, b.nbytes);
    }
    library_.before_call(last && request_.timeline);
    const double begin = now_seconds();
    const int32_t status = entry_(handles_.data(), offsets_.data());
    const double end = now_seconds();
    library_.after_call();
    if (status != 0) {
      fail(FailureKind::kRuntime, request_.entry + " returned " + std::to_string(status));
    }
    return end - begin;
  }

  void require_same_output(const Buffer& b) const {
    if (b.role != Role::kOutput || b.nbytes == 0) return;
    std::vector<uint8_t> again(b.nbytes);
    library_.copy_out(again.data(), b.handle, b.nbytes);
    const uint8_t* first = b.results + (request_.samples - 1) * b.nbytes;
    if (std::memcmp(first, again.data(), b.nbytes) == 0) return;
    const auto index = &b - request_.buffers.data();
    fail(FailureKind::kUnstable,
         "buffer " + std::to_string(index) + " differs between two calls with the same inputs");
  }

  Request& request_;
  VtaLibrary& library_;
  Entry entry_;
  std::vector<void*> handles_;
  std::vector<int64_t> offsets_;
  std::vector<uint64_t> sample_cycles_;
  std::vector<double> seconds_;
};

}  // namespace

Reply run(Frame& frame, VtaLibrary& library, const Artifact& artifact) {
  Request request = take_request(frame);
  if (request.samples == 0) fail(FailureKind::kProtocol, "a run without samples");
  const double begin = now_seconds();
  Session session(request, library, artifact.entry(request.entry));
  session.run_samples();
  session.run_repeats();
  return session.reply(now_seconds() - begin);
}

}  // namespace tilefarm::runner
