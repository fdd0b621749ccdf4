#include "stream_recorder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tilefarm {

RecordedStream::RecordedStream(std::vector<Word> words, const Dram& dram)
    : words_(std::move(words)) {
  for (const DataBuffer* buffer : dram.occupied()) {
    before_.push_back({buffer->address, {buffer->host, buffer->host + buffer->nbytes}});
  }
}

// Buffers are the same as before the run: nothing allocates while it lasts.
void RecordedStream::complete(const Dram& dram, const tilefarm_vta_counters& counters) {
  for (const DataBuffer* buffer : dram.occupied()) {
    const auto same = [&](const Segment& s) {
      return s.address == buffer->address && s.bytes.size() == buffer->nbytes &&
             std::memcmp(s.bytes.data(), buffer->host, buffer->nbytes) == 0;
    };
    if (std::any_of(before_.begin(), before_.end(), same)) continue;
    changed_.push_back({buffer->address, {buffer->host, buffer->host + buffer->nbytes}});
  }
  counters_ = counters;
}

uint64_t RecordedStream::image_nbytes() const {
  uint64_t end = 0;
  for (const Segment& s : before_) end = std::max(end, s.address + s.bytes.size());
  return end;
}

void RecordedStream::read_before(uint8_t* image) const {
  for (const Segment& s : before_) std::copy(s.bytes.begin(), s.bytes.end(), image + s.address);
}

void RecordedStream::read_after(uint8_t* image) const {
  read_before(image);
  for (const Segment& s : changed_) std::copy(s.bytes.begin(), s.bytes.end(), image + s.address);
}

}  // namespace tilefarm
