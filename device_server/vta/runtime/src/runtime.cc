#include "runtime.h"

#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "dump.h"

namespace tilefarm {
namespace {

Module module_of_stage(int stage) {
  const int last = kFirstStage + kModules - 1;
  if (stage < kFirstStage || stage > last) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "stage %d is not within %d (%s) to %d (%s)", stage,
         kFirstStage, kModuleNames[0], last, kModuleNames[kModules - 1]);
  }
  return static_cast<Module>(stage - kFirstStage);
}

tilefarm_vta_counters difference(tilefarm_vta_counters a, const tilefarm_vta_counters& b) {
  uint64_t words[2][sizeof a / sizeof(uint64_t)];
  std::memcpy(words[0], &a, sizeof a);
  std::memcpy(words[1], &b, sizeof b);
  for (size_t k = 0; k < std::size(words[0]); ++k) words[0][k] -= words[1][k];
  std::memcpy(&a, words[0], sizeof a);
  return a;
}

}  // namespace

Runtime::Runtime(const Config& config, uint64_t stream_nbytes)
    : accelerator_(config),
      queue_(accelerator_.encoding(), stream_nbytes),
      uop_cache_(config.uop_depth(), config.original_uop_cache),
      uop_image_(accelerator_.dram().reserve(kUopImageNbytes)) {}

void Runtime::append_transfer(Opcode opcode, const void* handle, uint32_t offset,
                              const Transfer& t) {
  const DataBuffer* buffer = accelerator_.dram().find(handle);
  if (buffer == nullptr) {
    fail(TILEFARM_VTA_BAD_ARGUMENT, "%p is not a data buffer", handle);
  }
  Instruction f;
  f.opcode = static_cast<uint32_t>(opcode);
  f.memory = t.memory;
  const uint64_t element = element_nbytes(accelerator_.config(), f.mem());
  const uint64_t base = buffer->address / element + offset;
  if (base > UINT32_MAX) fail(TILEFARM_VTA_FIELD_OVERFLOW, "DRAM base does not fit its 32 bits");
  f.dram_base = static_cast<uint32_t>(base);
  f.sram_base = t.sram;
  f.x_size = t.x;
  f.y_size = t.y;
  f.x_stride = t.stride;
  f.x_pad_0 = t.x_pad_0;
  f.x_pad_1 = t.x_pad_1;
  f.y_pad_0 = t.y_pad_0;
  f.y_pad_1 = t.y_pad_1;
  queue_.append(f);
  synchronize_before_overflow();
}

void Runtime::load(const void* source, uint32_t offset, const Transfer& transfer) {
  append_transfer(Opcode::kLoad, source, offset, transfer);
}

void Runtime::store(const void* destination, uint32_t offset, const Transfer& transfer) {
  append_transfer(Opcode::kStore, destination, offset, transfer);
}

UopKernel& Runtime::recording() {
  if (recording_ == nullptr) {
    fail(TILEFARM_VTA_BAD_RECORDING, "micro-ops outside of VTAPushGEMMOp and VTAPushALUOp");
  }
  return *recording_;
}

// The recorded kernel of this site and closure; records it by a call when it is the first.
UopKernel* Runtime::kernel_of(UopMode mode, void** handle, int (*record)(void*), void* closure,
                              int nbytes) {
  if (handle == nullptr) fail(TILEFARM_VTA_BAD_ARGUMENT, "no place for a kernel's handle");
  if (recording_ != nullptr) fail(TILEFARM_VTA_BAD_RECORDING, "a kernel inside a kernel");
  const uint32_t key = closure_key(closure, nbytes);
  UopSite& site = sites_.at(handle);
  if (UopKernel* known = site.find(key)) return known;
  auto fresh = std::make_unique<UopKernel>();
  recording_ = fresh.get();
  const int status = record(closure);
  recording_ = nullptr;
  if (status != 0) {
    fail(TILEFARM_VTA_BAD_RECORDING, "the recording function returned %d", status);
  }
  fresh->finish(mode);
  return site.keep(key, std::move(fresh));
}

void Runtime::push_kernel(UopMode mode, void** handle, int (*record)(void*), void* closure,
                          int nbytes) {
  append_kernel(*kernel_of(mode, handle, record, closure, nbytes));
  synchronize_before_overflow();
}

void Runtime::append_kernel(UopKernel& kernel) {
  if (uop_cache_.would_overflow(kernel)) synchronize();
  if (uop_cache_.admit(kernel)) append_uop_load(kernel);
  if (debug_ & kDumpUops) {
    size_t index = kernel.place.sram_begin;
    for (uint32_t word : kernel.words()) {
      const Uop uop = accelerator_.encoding().decode_uop(word);
      std::fprintf(stderr, "%s\n", dump(index++, uop).c_str());
    }
  }
  Instruction f = kernel.instruction();
  f.uop_begin = kernel.place.sram_begin;
  f.uop_end = f.uop_begin + static_cast<uint32_t>(kernel.words().size());
  queue_.append(f);
}

void Runtime::append_uop_load(const UopKernel& kernel) {
  Instruction f;
  f.opcode = static_cast<uint32_t>(Opcode::kLoad);
  f.memory = static_cast<uint32_t>(Memory::kUop);
  f.sram_base = kernel.place.sram_begin;
  f.dram_base = static_cast<uint32_t>(uop_image_->address / kUopNbytes) + kernel.place.dram_index;
  f.y_size = 1;
  f.x_size = f.x_stride = static_cast<uint32_t>(kernel.words().size());
  queue_.append(f);
}

void Runtime::push_dependence(int from, int to) {
  queue_.push_dependence(module_of_stage(from), module_of_stage(to));
  synchronize_before_overflow();
}

void Runtime::pop_dependence(int from, int to) {
  queue_.pop_dependence(module_of_stage(from), module_of_stage(to));
  synchronize_before_overflow();
}

void Runtime::synchronize_before_overflow() {
  if (queue_.nearly_full()) synchronize();
}

void Runtime::synchronize() {
  if (recording_ != nullptr) fail(TILEFARM_VTA_BAD_RECORDING, "synchronized inside a kernel");
  (debug_ & kForceSerial) ? queue_.close_serial() : queue_.close();
  if (debug_ & kDumpInstructions) dump_queue();
  std::vector<uint32_t> uops = uop_cache_.image();
  const std::vector<Word> words = queue_.words();
  drop_queue();
  remote_ ? remote_->run(words, uops) : execute(words, std::move(uops));
}

void Runtime::execute(const std::vector<Word>& words, std::vector<uint32_t> uops) {
  struct Shown {
    ~Shown() {
      image.host = nullptr;
      image.nbytes = 0;
    }
    DataBuffer& image;
  } shown{*uop_image_};
  shown.image.host = reinterpret_cast<uint8_t*>(uops.data());
  shown.image.nbytes = uops.size() * kUopNbytes;
  keep_streams_ ? run_recorded(words) : accelerator_.run(words);
}

void Runtime::begin_anew(const Arena& arena) {
  reset();
  accelerator_.clear_counters();
  accelerator_.record_timeline(false);
  accelerator_.forget_times();
  accelerator_.dram().share(arena);
}

DataBuffer* Runtime::allocate(size_t nbytes) {
  DataBuffer* buffer = accelerator_.dram().allocate(nbytes);
  if (remote_) remote_->allocate(nbytes);
  return buffer;
}

void Runtime::release(const void* handle) {
  const uint64_t address = accelerator_.dram().release(handle);
  if (remote_) remote_->release(address);
}

void Runtime::begin_call(bool record_timeline) {
  reset();
  accelerator_.clear_counters();
  accelerator_.record_timeline(record_timeline);
  if (remote_) remote_->begin_call(record_timeline);
}

void Runtime::run_recorded(const std::vector<Word>& words) {
  RecordedStream stream(words, accelerator_.dram());
  const tilefarm_vta_counters before = accelerator_.counters();
  accelerator_.run(words);
  stream.complete(accelerator_.dram(), difference(accelerator_.counters(), before));
  recorded_.push_back(std::move(stream));
}

void Runtime::record_streams(bool on) {
  if (on) recorded_.clear();
  keep_streams_ = on;
}

void Runtime::run_image(const std::vector<Word>& words, uint8_t* image, uint64_t nbytes) {
  reset();
  accelerator_.clear_counters();
  Dram& dram = accelerator_.dram();
  const DramView view(dram, image, nbytes);
  accelerator_.run(words);
}

void Runtime::dump_queue() const {
  size_t index = 0;
  for (const Instruction& f : queue_.instructions()) {
    std::fprintf(stderr, "%s\n", dump(index++, f).c_str());
  }
}

std::string Runtime::tokens_left() const {
  return remote_ ? remote_->tokens_left() : accelerator_.describe_tokens();
}

void Runtime::check_idle() {
  if (remote_) remote_->flush();
  if (!queue_.empty()) {
    fail(TILEFARM_VTA_TOKENS_LEFT, "%zu instructions or waits were queued but not synchronized",
         queue_.instructions().size());
  }
  if (const std::string tokens = tokens_left(); !tokens.empty()) {
    fail(TILEFARM_VTA_TOKENS_LEFT, "tokens left over: %s", tokens.c_str());
  }
}

void Runtime::drop_queue() {
  queue_.clear();
  uop_cache_.clear();
}

void Runtime::reset() {
  drop_queue();
  recording_ = nullptr;
  accelerator_.reset();
}

}  // namespace tilefarm
