#include "dram.h"

#include <sys/mman.h>
#include <unistd.h>

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

HostMemory::HostMemory(size_t nbytes, const Arena& arena, uint64_t address)
    : shared_(arena.file >= 0) {
  const size_t used = round_up(std::max<size_t>(nbytes, 1), kHostAlignment);
  map_nbytes_ = round_up(used, kPageNbytes) + kPageNbytes;
  map_ = shared_ ? mmap(nullptr, map_nbytes_, PROT_READ | PROT_WRITE, MAP_SHARED, arena.file,
                        static_cast<off_t>(address))
                 : mmap(nullptr, map_nbytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map_ == MAP_FAILED) {
    fail(TILEFARM_VTA_NO_MEMORY, "the host has no room for a buffer of %zu bytes", nbytes);
  }
  uint8_t* guard = static_cast<uint8_t*>(map_) + map_nbytes_ - kPageNbytes;
  mprotect(guard, kPageNbytes, PROT_NONE);
  data_ = guard - used;
}

HostMemory::~HostMemory() { munmap(map_, map_nbytes_); }

void HostMemory::forget() const {
  if (shared_) madvise(map_, map_nbytes_ - kPageNbytes, MADV_REMOVE);
}

Dram::Dram(uint64_t alignment) : alignment_(std::max(alignment, kPageNbytes)) {}

// Files are mapped from where a page of the host begins.
void Dram::share(const Arena& arena) {
  std::vector<const DataBuffer*> gone;
  for (const auto& [address, buffer] : by_address_) {
    if (buffer->memory) gone.push_back(buffer);
  }
  for (const DataBuffer* buffer : gone) drop(buffer);
  arena_ = arena;
  alignment_ = std::max(alignment_, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

DataBuffer* Dram::allocate(size_t nbytes) {
  if (nbytes > kLargestBuffer) fail(TILEFARM_VTA_NO_MEMORY, "a buffer of %zu bytes", nbytes);
  DataBuffer buffer;
  buffer.nbytes = nbytes;
  buffer.reserved_nbytes = round_up(std::max<size_t>(nbytes, 1), kPageNbytes);
  buffer.address = free_address(buffer.reserved_nbytes);
  buffer.memory = std::make_unique<HostMemory>(nbytes, arena_, buffer.address);
  buffer.host = buffer.memory->data();
  return insert(std::move(buffer));
}

DataBuffer* Dram::reserve(uint64_t nbytes) {
  DataBuffer buffer;
  buffer.reserved_nbytes = round_up(nbytes, kPageNbytes);
  buffer.address = free_address(buffer.reserved_nbytes);
  return insert(std::move(buffer));
}

uint64_t Dram::release(const void* handle) {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "VTABufferFree: %p is not a data buffer", handle);
  }
  const uint64_t address = found->second->address;
  if (found->second->memory) found->second->memory->forget();
  drop(found->second.get());
  return address;
}

// Addresses that are only reserved are nobody's to release. The contents are left alone: in an
// arena the next buffer of the process that asks may lie there already.
void Dram::release_at(uint64_t address) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || !found->second->memory) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "no data buffer begins at 0x%llx",
         static_cast<unsigned long long>(address));
  }
  drop(found->second);
}

void Dram::drop(const DataBuffer* buffer) {
  by_address_.erase(buffer->address);
  by_handle_.erase(buffer);
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

uint64_t Dram::address_limit() const {
  return arena_.file < 0 ? kAddressLimit : std::min(kAddressLimit, arena_.nbytes);
}

// First fit; the gap before the first page keeps address 0 invalid.
uint64_t Dram::free_address(uint64_t nbytes) const {
  uint64_t candidate = alignment_;
  for (const auto& [address, buffer] : by_address_) {
    if (candidate + nbytes <= address) break;
    candidate = round_up(address + buffer->reserved_nbytes, alignment_);
  }
  if (candidate + nbytes > address_limit()) {
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
