#include "request.h"

#include <sys/mman.h>
#include <unistd.h>

#include "failure.h"

namespace tilefarm::runner {
namespace {

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

}  // namespace

Mapping::Mapping(int fd, size_t nbytes, bool writable) : nbytes_(nbytes) {
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

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, nbytes_);
}

Request Request::taken_from(Frame& frame) {
  Request request;
  request.entry = frame.take_text();
  request.samples = frame.take<uint32_t>();
  request.repeats = frame.take<uint32_t>();
  request.timeline = frame.take<uint8_t>() != 0;
  request.precision.error = frame.take<double>();
  request.precision.seconds = frame.take<double>();
  const auto parts = frame.take<uint32_t>();
  for (uint32_t k = 0; k < parts; ++k) request.profile.push_back(frame.take_text());
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
  if (request.samples == 0) fail(FailureKind::kProtocol, "a run without samples");
  map_results(request, frame.descriptors[next_descriptor].get());
  return request;
}

}  // namespace tilefarm::runner
