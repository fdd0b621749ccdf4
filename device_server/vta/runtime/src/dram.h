// Data buffers in the accelerator's address space, and the host memory behind them.
//
// Physical addresses follow the original's virtual memory: 4 KiB pages from 0x1000, 0 is invalid.
#ifndef TILEFARM_DRAM_H_
#define TILEFARM_DRAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tilefarm {

// A file in memory that buffers may lie in, at their addresses, for several processes to see.
struct Arena {
  int file = -1;  // negative: there is none
  uint64_t nbytes = 0;
};

// Memory, zero at first, that ends at a page nobody may touch.
class HostMemory {
 public:
  // A part of the arena, or anonymous without one. NO_MEMORY when the host has none.
  HostMemory(size_t nbytes, const Arena& arena, uint64_t address);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  uint8_t* data() const { return data_; }
  void forget() const;  // zeros again, for the next part of the arena that lies here

 private:
  void* map_;
  size_t map_nbytes_;
  bool shared_;
  uint8_t* data_;
};

struct DataBuffer {
  uint64_t address = 0;
  uint64_t reserved_nbytes = 0;  // of the address space
  uint64_t nbytes = 0;           // that may be accessed
  uint8_t* host = nullptr;
  std::unique_ptr<HostMemory> memory;  // null when somebody else owns it
};

class Dram {
 public:
  // Allocations begin at multiples of `alignment`, so that bursts split the same way in every run.
  explicit Dram(uint64_t alignment);

  // From now on buffers are allocated in the arena. Those that there are go; what is only reserved
  // stays.
  void share(const Arena& arena);

  DataBuffer* allocate(size_t nbytes);
  DataBuffer* reserve(uint64_t nbytes);        // addresses without memory
  uint64_t release(const void* handle);        // its address; BAD_ARGUMENT for an unknown handle
  void release_at(uint64_t address);           // BAD_ARGUMENT when no buffer begins there
  DataBuffer* find(const void* handle) const;  // null for an unknown handle

  std::vector<const DataBuffer*> occupied() const;  // with memory, by address

  // Host pointer to [address, address + nbytes), null unless that lies in one buffer.
  uint8_t* at(uint64_t address, uint64_t nbytes) const;

 private:
  DataBuffer* insert(DataBuffer buffer);
  void drop(const DataBuffer* buffer);
  uint64_t address_limit() const;
  uint64_t free_address(uint64_t nbytes) const;

  friend class DramView;

  uint64_t alignment_;
  Arena arena_;
  const DataBuffer* view_ = nullptr;
  std::map<uint64_t, DataBuffer*> by_address_;
  std::unordered_map<const void*, std::unique_ptr<DataBuffer>> by_handle_;
};

// While it lives, the accelerator sees one flat image at address 0 instead of the buffers.
class DramView {
 public:
  DramView(Dram& dram, uint8_t* host, uint64_t nbytes);
  ~DramView();
  DramView(const DramView&) = delete;
  DramView& operator=(const DramView&) = delete;

 private:
  Dram& dram_;
  DataBuffer image_;
};

}  // namespace tilefarm

#endif  // TILEFARM_DRAM_H_
