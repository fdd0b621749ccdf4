// What the original runtime's functions work on: one accelerator, its queue, and recorded kernels.
#ifndef TILEFARM_RUNTIME_H_
#define TILEFARM_RUNTIME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "accelerator.h"
#include "command_queue.h"
#include "config.h"
#include "error.h"
#include "remote/remote_accelerator.h"
#include "stream_recorder.h"
#include "uop_cache.h"
#include "uop_kernel.h"

namespace tilefarm {

// Flags of VTASetDebugMode. Skipping barriers (8, 16) changes nothing: host and accelerator see one
// coherent memory.
constexpr uint32_t kDumpInstructions = 1u << 1;
constexpr uint32_t kDumpUops = 1u << 2;
constexpr uint32_t kForceSerial = 1u << 5;

// One DMA in the terms of the API: x and y in elements of the memory type.
struct Transfer {
  uint32_t x = 0, y = 0, stride = 0;
  uint32_t x_pad_0 = 0, y_pad_0 = 0, x_pad_1 = 0, y_pad_1 = 0;
  uint32_t sram = 0, memory = 0;
};

class Runtime {
 public:
  // Synchronizes by itself before a stream is longer than that.
  explicit Runtime(const Config& config, uint64_t stream_nbytes = kStreamNbytes);

  Accelerator& accelerator() { return accelerator_; }

  void load(const void* source, uint32_t offset, const Transfer& transfer);
  void store(const void* destination, uint32_t offset, const Transfer& transfer);
  void push_kernel(UopMode mode, void** handle, int (*record)(void*), void* closure, int nbytes);
  UopKernel& recording();  // BAD_RECORDING outside of a recording
  void push_dependence(int from, int to);
  void pop_dependence(int from, int to);
  void synchronize();

  // Runs a stream, with its micro-ops where the streams of this runtime have them.
  void execute(const std::vector<Word>& words, std::vector<uint32_t> uops);

  // From now on streams run on an accelerator that another process plays. It sees the buffers
  // that are allocated from now on, in the arena.
  void connect(std::unique_ptr<RemoteAccelerator> remote) { remote_ = std::move(remote); }
  bool is_connected() const { return remote_ != nullptr; }

  // As new, but for its configuration and limits; its buffers lie in the arena from now on.
  void begin_anew(const Arena& arena);

  DataBuffer* allocate(size_t nbytes);
  void release(const void* handle);  // BAD_ARGUMENT for an unknown handle
  // From a reset on: what the accelerator does until the next one belongs together.
  void begin_call(bool record_timeline);

  // Runs a raw stream from a reset on an image at address 0, in place of all data buffers.
  void run_image(const std::vector<Word>& words, uint8_t* image, uint64_t nbytes);

  // While on, every synchronization is kept; switching it on forgets the ones before.
  void record_streams(bool on);
  const std::vector<RecordedStream>& recorded_streams() const { return recorded_; }

  void set_debug(uint32_t flags) { debug_ = flags; }
  void check_idle();  // TOKENS_LEFT unless synchronized and without tokens
  void reset();
  void drop_queue();  // instructions that were not run, and resident kernels

 private:
  void append_transfer(Opcode opcode, const void* handle, uint32_t offset, const Transfer& t);
  UopKernel* kernel_of(UopMode mode, void** handle, int (*record)(void*), void* closure,
                       int nbytes);
  void append_kernel(UopKernel& kernel);
  void run_recorded(const std::vector<Word>& words);
  std::string tokens_left() const;
  void append_uop_load(const UopKernel& kernel);
  void synchronize_before_overflow();
  void dump_queue() const;

  Accelerator accelerator_;
  std::unique_ptr<RemoteAccelerator> remote_;
  CommandQueue queue_;
  UopSites sites_;
  UopCache uop_cache_;
  DataBuffer* uop_image_;
  UopKernel* recording_ = nullptr;
  uint32_t debug_ = 0;
  bool keep_streams_ = false;
  std::vector<RecordedStream> recorded_;
};

}  // namespace tilefarm

#endif  // TILEFARM_RUNTIME_H_
