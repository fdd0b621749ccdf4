// The instruction stream under construction, with dependence merging as the original runtime does
// it.
#ifndef TILEFARM_COMMAND_QUEUE_H_
#define TILEFARM_COMMAND_QUEUE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "encoding.h"

namespace tilefarm {

constexpr uint64_t kStreamNbytes = uint64_t{32} << 20;  // of the original's instruction buffer

class CommandQueue {
 public:
  explicit CommandQueue(const Encoding& encoding, uint64_t stream_nbytes = kStreamNbytes)
      : encoding_(encoding), stream_nbytes_(stream_nbytes) {}

  // Appends; the instruction takes over the waits that are pending for its module.
  void append(Instruction instruction);

  // A token from one module to another is given by, or waited for by, the queue of the one named
  // first or second. BAD_ARGUMENT when they are not neighbours.
  void push_dependence(Module from, Module to);
  void pop_dependence(Module from, Module to);

  void close();         // the hand-shake of a synchronization, and FINISH
  void close_serial();  // the same with one instruction at a time
  void clear();

  const std::vector<Instruction>& instructions() const { return instructions_; }
  std::vector<Word> words() const;
  bool empty() const;  // neither instructions nor pending waits
  bool nearly_full() const;

 private:
  struct Pending {
    bool prev = false, next = false;
  };

  void flush_waits(Module module);  // as a NOP
  void append_nop(Module module, bool push_prev, bool push_next);
  void append_checked(const Instruction& instruction);
  Pending& pending(Module module) { return pending_[static_cast<size_t>(module)]; }

  const Encoding& encoding_;
  const uint64_t stream_nbytes_;
  std::array<Pending, kModules> pending_;
  std::vector<Instruction> instructions_;
};

}  // namespace tilefarm

#endif  // TILEFARM_COMMAND_QUEUE_H_
