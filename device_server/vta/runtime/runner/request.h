// A request to run: the entry, how often, and the buffers with their contents mapped.
#ifndef TILEFARM_RUNNER_REQUEST_H_
#define TILEFARM_RUNNER_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frames.h"
#include "wall_time.h"

namespace tilefarm::runner {

enum class Role : uint8_t { kConstant = 0, kInput = 1, kOutput = 2, kScratch = 3 };

// A file in memory; must be at least as long as what is asked of it.
class Mapping {
 public:
  Mapping(int fd, size_t nbytes, bool writable);
  ~Mapping();
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
  Precision precision;               // no time is wanted where it is 0
  std::vector<std::string> profile;  // entries that do the same one after the other
  std::vector<Buffer> buffers;
  std::unique_ptr<Mapping> results;

  // kProtocol when the frame is none; kMemory when there is no room for its files.
  static Request taken_from(Frame& frame);
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_REQUEST_H_
