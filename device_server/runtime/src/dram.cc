#include "dram.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "error.h"

namespace tilefarm {
namespace {

constexpr uint64_t kPageNbytes = 4096;
constexpr uint64_t kHostAlignment = 256;
constexpr uint64_t kAddressLimit = uint64_t{1}
                                   << 36;  // 32-bit indices of the smallest data element
constexpr size_t kLargestBuffer = std::min<uint64_t>(uint64_t{1} << 40, SIZE_MAX / 2);

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

HostMemory::HostMemory(size_t nbytes) {
  if (nbytes > kLargestBuffer) fail(TILEFARM_VTA_NO_MEMORY, "a buffer of %zu bytes", nbytes);
  const size_t used = round_up(std::max<size_t>(nbytes, 1), kHostAlignment);
  map_nbytes_ = round_up(used, kPageNbytes) + kPageNbytes;
  map_ = mmap(nullptr, map_nbytes_, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map_ == MAP_FAILED) {
    fail(TILEFARM_VTA_NO_MEMORY, "the host has no room for a buffer of %zu bytes", nbytes);
  }
  uint8_t* guard = static_cast<uint8_t*>(map_) + map_nbytes_ - kPageNbytes;
  mprotect(guard, kPageNbytes, PROT_NONE);
  data_ = guard - used;
}

HostMemory::~HostMemory() { munmap(map_, map_nbytes_); }

Dram::Dram(uint64_t alignment) : alignment_(std::max(alignment, kPageNbytes)) {}

DataBuffer* Dram::allocate(size_t nbytes) {
  DataBuffer buffer;
  buffer.memory = std::make_unique<HostMemory>(nbytes);
  buffer.host = buffer.memory->data();
  buffer.nbytes = nbytes;
  buffer.reserved_nbytes = round_up(std::max<size_t>(nbytes, 1), kPageNbytes);
  buffer.address = free_address(buffer.reserved_nbytes);
  return insert(std::move(buffer));
}

DataBuffer* Dram::reserve(uint64_t nbytes) {
  DataBuffer buffer;
  buffer.reserved_nbytes = round_up(nbytes, kPageNbytes);
  buffer.address = free_address(buffer.reserved_nbytes);
  return insert(std::move(buffer));
}

void Dram::release(const void* handle) {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "VTABufferFree: %p is not a data buffer", handle);
  }
  by_address_.erase(found->second->address);
  by_handle_.erase(found);
}

DataBuffer* Dram::find(const void* handle) const {
  const auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second.get();
}

uint8_t* Dram::at(uint64_t address, uint64_t nbytes) const {
  const DataBuffer* buffer = view_;
  if (buffer == nullptr) {
    const auto next = by_address_.upper_bound(address);
    if (next == by_address_.begin()) return nullptr;
    buffer = std::prev(next)->second;
  }
  const uint64_t offset = address - buffer->address;
  const bool inside =
      buffer->host != nullptr && offset <= buffer->nbytes && nbytes <= buffer->nbytes - offset;
  return inside ? buffer->host + offset : nullptr;
}

std::vector<const DataBuffer*> Dram::occupied() const {
  std::vector<const DataBuffer*> buffers;
  for (const auto& [address, buffer] : by_address_) {
    if (buffer->nbytes > 0) buffers.push_back(buffer);
  }
  return buffers;
}

DataBuffer* Dram::insert(DataBuffer buffer) {
  auto owned = std::make_unique<DataBuffer>(std::move(buffer));
  DataBuffer* raw = owned.get();
  by_address_[raw->address] = raw;
  by_handle_[raw] = std::move(owned);
  return raw;
}

// First fit; the gap before the first page keeps address 0 invalid.
uint64_t Dram::free_address(uint64_t nbytes) const {
  uint64_t candidate = alignment_;
  for (const auto& [address, buffer] : by_address_) {
    if (candidate + nbytes <= address) break;
    candidate = round_up(address + buffer->reserved_nbytes, alignment_);
  }
  if (candidate + nbytes > kAddressLimit) {
    fail(TILEFARM_VTA_NO_MEMORY, "the accelerator's address space is exhausted");
  }
  return candidate;
}

DramView::DramView(Dram& dram, uint8_t* host, uint64_t nbytes) : dram_(dram) {
  image_.host = host;
  image_.nbytes = image_.reserved_nbytes = nbytes;
  dram_.view_ = &image_;
}

DramView::~DramView() { dram_.view_ = nullptr; }

}  // namespace tilefarm
