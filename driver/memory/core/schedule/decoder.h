// From a sequence to a schedule: all begins as soon as it may, in the order of the sequence.
//
// A sequence has every step once, and where wanted buffers that are saved (written to the backing
// memory), that leave, and that come back: by a read, or by their step, which runs again. What
// begins later in it begins no earlier in time, so that bytes in use are known as it is decoded; any
// schedule is the decoded one of its own order of beginnings. Where bytes lack and none will come
// free by waiting, a buffer leaves that was not asked to; where a step uses a buffer that has left,
// it comes back just before. A result takes its operand's place where it may and nobody else wants
// that. Addresses are given on the way, or found afterwards for the whole schedule, which wastes
// less.

#ifndef TILEFARM_MEMORY_SCHEDULE_DECODER_H_
#define TILEFARM_MEMORY_SCHEDULE_DECODER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "barriers.h"
#include "ground.h"
#include "instance.h"

namespace tilefarm::memory {

using Token = int64_t;
using Tokens = std::vector<Token>;
constexpr int kMoves = 5;

inline Token token_of(tilefarm_memory_move move, int buffer) { return -1 - move - kMoves * buffer; }
inline int buffer_of(Token token) { return static_cast<int>((-1 - token) / kMoves); }
inline tilefarm_memory_move move_of(Token token) {
  return static_cast<tilefarm_memory_move>((-1 - token) % kMoves);
}

struct Decoded {
  Tokens tokens;  // the sequence with all that was added to it
  std::vector<tilefarm_memory_action> actions;
  std::vector<tilefarm_memory_residency> residencies;
  int64_t makespan = 0;
  int64_t extra_nbytes = 0;
  int64_t peak_nbytes = 0;

  // What a schedule is judged by, the most important first.
  std::array<int64_t, 3> cost() const { return {makespan, extra_nbytes, peak_nbytes}; }
};

// How gladly a buffer leaves, by one of so many rules: by the tokens to its next use, its bytes, the
// ticks to leave and to return.
constexpr int kRules = 4;
double gladness(int rule, int64_t distance, int64_t nbytes, int64_t leave, int64_t back);

// At which end of a gap a buffer lies: the low one for all, for large ones, for those that stay long.
enum class Fit { kLow, kBySize, kByStay };
constexpr int kFits = 3;

class Decoder {
 public:
  Decoder(const Instance& instance, bool is_placed);

  // The ways to decode a sequence: a rule, where there are addresses a fit, and where steps may run
  // again whether they do rather than save what leaves unasked.
  int styles() const { return kRules * fits() * ways(); }

  // False where a step has no room whatever leaves.
  bool decode(const Tokens& tokens, int style, Decoded& found);

 private:
  struct Held {  // what is known of a buffer
    int left;
    bool begun;
    bool here;
    bool is_changed;
    int64_t since;
    int64_t offset;
    bool is_brought;
    Token by;
    int64_t last_end;
    int64_t changed_at;
    int64_t saved_at;
    int slot;  // in residents_; -1: it is in none
  };
  struct Coming {  // bytes that come free
    int64_t end;
    int64_t nbytes;
    int buffer;
    int64_t offset;
  };

  int fits() const { return is_placed_ ? kFits : 1; }
  int ways() const { return has_makers_ ? 2 : 1; }
  bool run(const Tokens& tokens, Decoded& found);
  bool begin(const Tokens& tokens);
  bool step(int number);
  void take_places(const Step& step, int64_t& begin);
  void touch(int number, int64_t begin, int64_t end);
  bool moved(Token token);
  void gone(int number, int64_t end);
  void stops(int number, int64_t end);
  void used(int number);
  void leave(int number);
  void drop(int number);
  void save(int number);
  bool bring_back(int number, const Numbers& kept);
  bool read(int number, const Numbers& kept);
  bool again(int number, const Numbers& kept);
  bool again_as_wanted(int number);
  bool is_cheap_to_make(int number) const;
  bool room(int64_t& begin, const Numbers& wanted, const Numbers& kept);
  bool room_of_bytes(int memory, int64_t nbytes, int64_t& begin, const Numbers& kept);
  bool room_of_addresses(int memory, int64_t& begin, const Numbers& wanted, const Numbers& kept);
  bool lies_low(int number) const;
  bool places(int memory, const Numbers& wanted);
  int64_t free_first(int memory);
  bool make_room(int memory, const Numbers& kept);
  int64_t next_use(int number) const;
  void arrive(int number, int64_t begin, bool is_brought, Token by);

  const Instance& instance_;
  const bool is_placed_;
  bool has_makers_ = false;
  bool makes_ = true;
  Decoded* found_ = nullptr;
  int rule_ = 0;
  Fit fit_ = Fit::kLow;
  int64_t at_ = 0;
  int64_t now_ = 0;
  std::vector<Held> held_;
  std::vector<std::vector<int64_t>> free_;     // by engine and instance
  Barriers barriers_;
  std::vector<int64_t> used_;                  // by memory
  std::vector<std::vector<Coming>> coming_;    // by memory, a heap
  std::vector<Ground> bare_;                   // by memory, with nothing in it
  std::vector<Ground> ground_;
  std::vector<std::vector<int>> residents_;    // by memory, those that may leave
  std::vector<int64_t> ends_;                  // by step
  std::vector<int64_t> place_;                 // by step, in the sequence
  std::vector<Numbers> wanted_again_;  // by buffer: places of tokens that make something of it again
  Numbers lost_;   // what could not be made again, as an operand was gone: that one's first
  bool is_lost_ = false;
  int depth_ = 0;                      // of what is made again so that something is
  Numbers new_;
  std::vector<std::pair<int, int>> in_place_;
  std::vector<int64_t> wanted_nbytes_;         // by memory
};

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_DECODER_H_
