// Keeps synchronizations as programs: instructions, the memory before and after, what they did.
#ifndef TILEFARM_STREAM_RECORDER_H_
#define TILEFARM_STREAM_RECORDER_H_

#include <cstdint>
#include <vector>

#include "dram.h"
#include "encoding.h"
#include "tilefarm_vta.h"

namespace tilefarm {

class RecordedStream {
 public:
  RecordedStream(std::vector<Word> words, const Dram& dram);  // before it runs
  void complete(const Dram& dram, const tilefarm_vta_counters& counters);

  const std::vector<Word>& words() const { return words_; }
  const tilefarm_vta_counters& counters() const { return counters_; }
  uint64_t image_nbytes() const;

  // Images begin at address 0; only what buffers occupy is written.
  void read_before(uint8_t* image) const;
  void read_after(uint8_t* image) const;

 private:
  struct Segment {
    uint64_t address;
    std::vector<uint8_t> bytes;
  };

  std::vector<Word> words_;
  std::vector<Segment> before_;
  std::vector<Segment> changed_;  // segments that are different afterwards
  tilefarm_vta_counters counters_{};
};

}  // namespace tilefarm

#endif  // TILEFARM_STREAM_RECORDER_H_
