// What is known of each buffer, engine and memory as a sequence is gone through once.

#include "decoder.h"

#include <algorithm>
#include <limits>

namespace tilefarm::memory {
namespace {

constexpr int64_t kLongStay = 32;  // tokens
constexpr int kPrepared = 32;      // times that a sequence is mended so that operands are kept
constexpr int kDeep = 8;           // buffers that are made again for one another

bool is_later(int64_t end, int64_t nbytes, int64_t other_end, int64_t other_nbytes) {
  return end != other_end ? end > other_end : nbytes > other_nbytes;
}

bool contains(const Numbers& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

size_t earliest(const std::vector<int64_t>& free) {
  return std::min_element(free.begin(), free.end()) - free.begin();
}

}  // namespace

double gladness(int rule, int64_t distance, int64_t nbytes, int64_t leave, int64_t back) {
  const double far = static_cast<double>(distance);
  const double ticks = static_cast<double>(leave + back);
  switch (rule) {
    case 0: return far;
    case 1: return far * static_cast<double>(nbytes) / (1 + ticks);
    case 2: return far - (leave > 0 ? 1e6 : 0);
    default: return far / (1 + ticks);
  }
}

Decoder::Decoder(const Instance& instance, bool is_placed)
    : instance_(instance), is_placed_(is_placed), barriers_(instance.barriers) {
  for (int at = 0; at < static_cast<int>(instance.memories.size()); at++) {
    bare_.emplace_back(instance, at);
  }
  for (const WholeBuffer& each : instance.buffers) has_makers_ |= each.remade_by >= 0;
}

bool Decoder::decode(const Tokens& tokens, int style, Decoded& found) {
  fit_ = static_cast<Fit>(style % fits());
  makes_ = style / fits() % ways() == 0;
  rule_ = style / fits() / ways();
  if (run(tokens, found)) return true;
  Tokens mended = tokens;
  for (int turn = 0; turn < kPrepared && !lost_.empty(); turn++) {
    const Token last = token_of(TILEFARM_MEMORY_AGAIN, lost_.back());
    if (mended[at_] == last) return false;
    Tokens again;
    for (const int each : lost_) again.push_back(token_of(TILEFARM_MEMORY_AGAIN, each));
    mended.insert(mended.begin() + at_, again.begin(), again.end());
    if (run(mended, found)) return true;
  }
  return false;
}

bool Decoder::run(const Tokens& tokens, Decoded& found) {
  found_ = &found;
  found = Decoded{};
  lost_.clear();
  is_lost_ = false;
  if (!begin(tokens)) return false;
  for (at_ = 0; at_ < static_cast<int64_t>(tokens.size()); at_++) {
    const Token token = tokens[at_];
    if (!(token >= 0 ? step(static_cast<int>(token)) : moved(token))) return false;
  }
  for (const auto& each : found.actions) found.makespan = std::max(found.makespan, each.end);
  for (int at = 0; at < static_cast<int>(held_.size()); at++) {
    const Held& held = held_[at];
    if (held.here && instance_.buffers[at].is_kept) {
      found.residencies.push_back(
          {at, held.since, found.makespan, held.is_brought, held.by, held.offset});
    }
  }
  return true;
}

bool Decoder::begin(const Tokens& tokens) {
  const size_t memories = instance_.memories.size();
  now_ = 0;
  held_.assign(instance_.buffers.size(), Held{});
  free_.resize(instance_.instances.size());
  for (size_t at = 0; at < free_.size(); at++) free_[at].assign(instance_.instances[at], 0);
  barriers_.clear();
  used_.assign(memories, 0);
  coming_.assign(memories, {});
  residents_.assign(memories, {});
  if (is_placed_) ground_ = bare_;
  ends_.assign(instance_.steps.size(), 0);
  place_.assign(instance_.steps.size(), 0);
  wanted_again_.assign(held_.size(), {});
  depth_ = 0;
  for (size_t at = 0; at < tokens.size(); at++) {
    if (tokens[at] >= 0) {
      place_[tokens[at]] = static_cast<int64_t>(at);
    } else if (move_of(tokens[at]) == TILEFARM_MEMORY_AGAIN) {
      const int step = instance_.buffers[buffer_of(tokens[at])].remade_by;
      if (step < 0) continue;
      for (const int each : instance_.steps[step].uses) {
        if (each != buffer_of(tokens[at])) wanted_again_[each].push_back(static_cast<int>(at));
      }
    }
  }
  for (int at = 0; at < static_cast<int>(held_.size()); at++) {
    const WholeBuffer& buffer = instance_.buffers[at];
    Held& held = held_[at];
    held.left = static_cast<int>(buffer.users.size() + wanted_again_[at].size());
    held.offset = held.slot = -1;
    if (!buffer.is_present || (held.left == 0 && !buffer.is_kept)) continue;
    if (is_placed_ && (held.offset = ground_[buffer.memory].place(buffer, true)) < 0) return false;
    held.is_changed = true;
    used_[buffer.memory] += buffer.aligned_nbytes;
    arrive(at, 0, false, 0);
  }
  for (const int64_t used : used_) found_->peak_nbytes = std::max(found_->peak_nbytes, used);
  return true;
}

bool Decoder::step(int number) {
  const Step& step = instance_.steps[number];
  new_.clear();
  for (const int each : step.uses) {
    const Held& held = held_[each];
    if (!held.begun) {
      new_.push_back(each);
    } else if (!held.here && !bring_back(each, step.uses)) {
      return false;
    }
  }
  int64_t begin = now_;
  for (const int each : step.uses) {
    if (held_[each].here) begin = std::max(begin, held_[each].saved_at);
  }
  for (const int each : step.before) begin = std::max(begin, ends_[each]);
  std::vector<int64_t>& free = free_[step.engine];
  const size_t instance = earliest(free);
  begin = std::max(begin,
                   step.takes_all ? *std::max_element(free.begin(), free.end()) : free[instance]);
  take_places(step, begin);
  if (!room(begin, new_, step.uses)) return false;
  begin = barriers_.earliest(begin, step.ticks);
  const int64_t end = begin + step.ticks;
  barriers_.hold(begin, end);
  now_ = begin;
  ends_[number] = end;
  if (step.takes_all) {
    std::fill(free.begin(), free.end(), end);
  } else {
    free[instance] = end;
  }
  found_->actions.push_back(
      {number, step.engine, step.takes_all ? -1 : static_cast<int64_t>(instance), begin, end});
  found_->tokens.push_back(number);
  touch(number, begin, end);
  return true;
}

// Which new buffers take the place of an operand that nobody wants any more; they need no room. One
// that is still in use otherwise is waited for only where bytes lack.
void Decoder::take_places(const Step& step, int64_t& begin) {
  in_place_.clear();
  for (const auto& [operand, result] : step.in_place) {
    const Held& held = held_[operand];
    const auto wanted = std::find(new_.begin(), new_.end(), result);
    if (wanted == new_.end() || !held.here || held.left > 1) continue;
    if (instance_.buffers[operand].is_kept) continue;
    if (instance_.buffers[operand].alignment != instance_.buffers[result].alignment) continue;
    const int memory = instance_.buffers[operand].memory;
    const int64_t capacity = instance_.memories[memory].capacity;
    while (!coming_[memory].empty() && coming_[memory].front().end <= begin) free_first(memory);
    const bool lacks =
        capacity && used_[memory] + instance_.buffers[result].aligned_nbytes > capacity;
    if (held.last_end > begin && !lacks) continue;
    const auto has_operand = [&, o = operand](const auto& each) { return each.first == o; };
    if (std::any_of(in_place_.begin(), in_place_.end(), has_operand)) continue;
    begin = std::max(begin, held.last_end);
    in_place_.emplace_back(operand, result);
    new_.erase(wanted);
  }
}

// The buffers of a step know that it was.
void Decoder::touch(int number, int64_t begin, int64_t end) {
  const Step& step = instance_.steps[number];
  for (const auto& [operand, result] : in_place_) {
    held_[result].offset = held_[operand].offset;
    held_[operand].saved_at = begin;
    stops(operand, begin);
    arrive(result, begin, true, number);
  }
  for (const int each : new_) arrive(each, begin, true, number);
  for (const int each : step.changes) {
    held_[each].is_changed = true;
    held_[each].changed_at = std::max(held_[each].changed_at, end);
  }
  for (const int each : step.uses) {
    held_[each].last_end = std::max(held_[each].last_end, end);
    used(each);
  }
}

// A use of a buffer is over; after the last one it is gone.
void Decoder::used(int number) {
  Held& held = held_[number];
  held.left--;
  if (held.left <= 0 && held.here && !instance_.buffers[number].is_kept) {
    gone(number, held.last_end);
  }
}

void Decoder::arrive(int number, int64_t begin, bool is_brought, Token by) {
  Held& held = held_[number];
  held.begun = held.here = true;
  held.since = begin;
  held.is_brought = is_brought;
  held.by = by;
  if (!instance_.buffers[number].may_leave()) return;
  Numbers& residents = residents_[instance_.buffers[number].memory];
  held.slot = static_cast<int>(residents.size());
  residents.push_back(number);
}

// Its bytes come free.
void Decoder::gone(int number, int64_t end) {
  const WholeBuffer& buffer = instance_.buffers[number];
  stops(number, end);
  auto& coming = coming_[buffer.memory];
  coming.push_back({end, buffer.aligned_nbytes, number, held_[number].offset});
  std::push_heap(coming.begin(), coming.end(), [](const Coming& a, const Coming& b) {
    return is_later(a.end, a.nbytes, b.end, b.nbytes);
  });
}

// It is in memory no more.
void Decoder::stops(int number, int64_t end) {
  const WholeBuffer& buffer = instance_.buffers[number];
  Held& held = held_[number];
  held.here = false;
  if (held.slot >= 0) {
    Numbers& residents = residents_[buffer.memory];
    residents[held.slot] = residents.back();
    held_[residents.back()].slot = held.slot;
    residents.pop_back();
    held.slot = -1;
  }
  found_->residencies.push_back({number, held.since, end, held.is_brought, held.by, held.offset});
}

// Whether a move could be made; one that makes no sense here is none.
bool Decoder::moved(Token token) {
  const int number = buffer_of(token);
  const Held& held = held_[number];
  const WholeBuffer& buffer = instance_.buffers[number];
  const bool is_wanted = held.begun && held.left > 0;
  switch (move_of(token)) {
    case TILEFARM_MEMORY_AGAIN: return buffer.remade_by < 0 || again_as_wanted(number);
    case TILEFARM_MEMORY_RETURN: return !is_wanted || held.here || bring_back(number, {});
    case TILEFARM_MEMORY_LEAVE:
      if (is_wanted && held.here && buffer.may_be_saved()) leave(number);
      break;
    case TILEFARM_MEMORY_DROP:
      if (is_wanted && held.here && buffer.remade_by >= 0) drop(number);
      break;
    case TILEFARM_MEMORY_SAVE:
      if (is_wanted && held.here && held.is_changed && buffer.may_be_saved()) save(number);
  }
  return true;
}

void Decoder::drop(int number) {
  Held& held = held_[number];
  held.saved_at = held.last_end;
  found_->tokens.push_back(token_of(TILEFARM_MEMORY_DROP, number));
  gone(number, held.last_end);
}

void Decoder::leave(int number) {
  Held& held = held_[number];
  if (held.is_changed) save(number);
  held.saved_at = held.last_end;
  found_->tokens.push_back(token_of(TILEFARM_MEMORY_LEAVE, number));
  gone(number, held.last_end);
}

void Decoder::save(int number) {
  const WholeBuffer& buffer = instance_.buffers[number];
  Held& held = held_[number];
  std::vector<int64_t>& free = free_[buffer.save.engine];
  const size_t instance = earliest(free);
  const int64_t begin =
      barriers_.earliest(std::max(free[instance], held.changed_at), buffer.save.ticks);
  const int64_t end = begin + buffer.save.ticks;
  barriers_.hold(begin, end);
  free[instance] = end;
  held.last_end = std::max(held.last_end, end);
  held.is_changed = false;
  found_->extra_nbytes += buffer.nbytes;
  const Token token = token_of(TILEFARM_MEMORY_SAVE, number);
  found_->actions.push_back(
      {token, buffer.save.engine, static_cast<int64_t>(instance), begin, end});
  found_->tokens.push_back(token);
}

bool Decoder::bring_back(int number, const Numbers& kept) {
  const WholeBuffer& buffer = instance_.buffers[number];
  if (!held_[number].is_changed && buffer.read.engine >= 0) return read(number, kept);
  is_lost_ = buffer.remade_by < 0;
  return buffer.remade_by >= 0 && again(number, kept);
}

// What a token asks for: its operands were kept for it, and are no longer.
bool Decoder::again_as_wanted(int number) {
  const Held& held = held_[number];
  if (held.begun && held.left > 0 && !held.here && !again(number, {})) return false;
  for (const int each : instance_.steps[instance_.buffers[number].remade_by].uses) {
    if (each != number) used(each);
  }
  return true;
}

// The step that made a buffer runs again; so do those of its operands that are nowhere else.
bool Decoder::again(int number, const Numbers& kept) {
  const Step& step = instance_.steps[instance_.buffers[number].remade_by];
  if (depth_ == kDeep) return false;
  Numbers all = kept;
  all.insert(all.end(), step.uses.begin(), step.uses.end());
  depth_++;
  for (const int each : step.uses) {
    if (each == number || held_[each].here || bring_back(each, all)) continue;
    if (is_lost_) lost_.push_back(number);
    return false;
  }
  depth_--;
  Held& held = held_[number];
  std::vector<int64_t>& free = free_[step.engine];
  const size_t instance = earliest(free);
  int64_t begin = std::max({now_, held.saved_at, held.last_end});
  for (const int each : step.uses) begin = std::max(begin, held_[each].saved_at);
  begin = std::max(begin,
                   step.takes_all ? *std::max_element(free.begin(), free.end()) : free[instance]);
  if (!room(begin, {number}, all)) return false;
  begin = barriers_.earliest(begin, step.ticks);
  const int64_t end = begin + step.ticks;
  barriers_.hold(begin, end);
  now_ = begin;
  if (step.takes_all) {
    std::fill(free.begin(), free.end(), end);
  } else {
    free[instance] = end;
  }
  const Token token = token_of(TILEFARM_MEMORY_AGAIN, number);
  found_->actions.push_back(
      {token, step.engine, step.takes_all ? -1 : static_cast<int64_t>(instance), begin, end});
  found_->tokens.push_back(token);
  arrive(number, begin, true, token);
  held.is_changed = true;
  held.last_end = held.saved_at = held.changed_at = end;
  for (const int each : step.uses) {
    Held& its = held_[each];
    its.last_end = std::max(its.last_end, end);
    if (each != number && its.left == 0 && its.here && !instance_.buffers[each].is_kept) gone(each, its.last_end);
  }
  return true;
}

bool Decoder::read(int number, const Numbers& kept) {
  const WholeBuffer& buffer = instance_.buffers[number];
  Held& held = held_[number];
  std::vector<int64_t>& free = free_[buffer.read.engine];
  const size_t instance = earliest(free);
  int64_t begin = std::max({now_, free[instance], held.saved_at, held.last_end});
  if (!room(begin, {number}, kept)) return false;
  begin = barriers_.earliest(begin, buffer.read.ticks);
  const int64_t end = begin + buffer.read.ticks;
  barriers_.hold(begin, end);
  now_ = begin;
  free[instance] = held.last_end = held.saved_at = end;
  const Token token = token_of(TILEFARM_MEMORY_RETURN, number);
  arrive(number, begin, true, token);
  found_->extra_nbytes += buffer.nbytes;
  found_->actions.push_back(
      {token, buffer.read.engine, static_cast<int64_t>(instance), begin, end});
  found_->tokens.push_back(token);
  return true;
}

// When, from `begin` on, the wanted buffers have room; they have it then.
bool Decoder::room(int64_t& begin, const Numbers& wanted, const Numbers& kept) {
  if (wanted.empty()) return true;
  wanted_nbytes_.assign(used_.size(), 0);
  std::vector<char> is_wanted(used_.size(), 0);
  for (const int each : wanted) {
    const WholeBuffer& buffer = instance_.buffers[each];
    wanted_nbytes_[buffer.memory] += buffer.aligned_nbytes;
    is_wanted[buffer.memory] = 1;
  }
  for (int memory = 0; memory < static_cast<int>(used_.size()); memory++) {
    if (!is_wanted[memory]) continue;
    if (!room_of_bytes(memory, wanted_nbytes_[memory], begin, kept)) return false;
    if (is_placed_ && !room_of_addresses(memory, begin, wanted, kept)) return false;
  }
  for (int memory = 0; memory < static_cast<int>(used_.size()); memory++) {
    if (!is_wanted[memory]) continue;
    while (!coming_[memory].empty() && coming_[memory].front().end <= begin) free_first(memory);
    used_[memory] += wanted_nbytes_[memory];
    found_->peak_nbytes = std::max(found_->peak_nbytes, used_[memory]);
  }
  return true;
}

bool Decoder::room_of_bytes(int memory, int64_t nbytes, int64_t& begin, const Numbers& kept) {
  const int64_t capacity = instance_.memories[memory].capacity;
  while (capacity && used_[memory] + nbytes > capacity) {
    if (coming_[memory].empty() && !make_room(memory, kept)) return false;
    begin = std::max(begin, free_first(memory));
  }
  return true;
}

bool Decoder::room_of_addresses(int memory, int64_t& begin, const Numbers& wanted,
                                const Numbers& kept) {
  while (!coming_[memory].empty() && coming_[memory].front().end <= begin) free_first(memory);
  while (!places(memory, wanted)) {
    if (coming_[memory].empty() && !make_room(memory, kept)) return false;
    begin = std::max(begin, free_first(memory));
  }
  return true;
}

bool Decoder::places(int memory, const Numbers& wanted) {
  Ground& ground = ground_[memory];
  for (size_t at = 0; at < wanted.size(); at++) {
    const WholeBuffer& buffer = instance_.buffers[wanted[at]];
    if (buffer.memory != memory) continue;
    held_[wanted[at]].offset = ground.place(buffer, lies_low(wanted[at]));
    if (held_[wanted[at]].offset >= 0) continue;
    while (at-- > 0) {
      const WholeBuffer& placed = instance_.buffers[wanted[at]];
      if (placed.memory == memory) ground.free(placed, held_[wanted[at]].offset);
    }
    return false;
  }
  return true;
}

bool Decoder::lies_low(int number) const {
  const WholeBuffer& buffer = instance_.buffers[number];
  switch (fit_) {
    case Fit::kLow: return true;
    case Fit::kBySize: return ground_[buffer.memory].is_large(buffer);
    case Fit::kByStay: break;
  }
  int64_t last = 0;
  for (const int user : buffer.users) last = std::max(last, place_[user]);
  return last - at_ > kLongStay;
}

// The bytes that come free next are free; when.
int64_t Decoder::free_first(int memory) {
  auto& coming = coming_[memory];
  std::pop_heap(coming.begin(), coming.end(), [](const Coming& a, const Coming& b) {
    return is_later(a.end, a.nbytes, b.end, b.nbytes);
  });
  const Coming first = coming.back();
  coming.pop_back();
  used_[memory] -= first.nbytes;
  if (is_placed_) ground_[memory].free(instance_.buffers[first.buffer], first.offset);
  return first.end;
}

// A buffer leaves: the one that the rule gives up most gladly.
bool Decoder::make_room(int memory, const Numbers& kept) {
  int worst = -1;
  double best = 0;
  for (const int number : residents_[memory]) {
    const Held& held = held_[number];
    if (held.left == 0 || contains(kept, number)) continue;
    const WholeBuffer& buffer = instance_.buffers[number];
    const bool is_made = is_cheap_to_make(number);
    const int64_t leave = held.is_changed && !is_made ? buffer.save.ticks : 0;
    const int64_t back = is_made ? instance_.steps[buffer.remade_by].ticks : buffer.read.ticks;
    const int64_t distance = next_use(number) - at_;
    const double score = gladness(rule_, distance, buffer.aligned_nbytes, leave, back);
    if (worst < 0 || score > best || (score == best && number < worst)) {
      worst = number;
      best = score;
    }
  }
  if (worst < 0) return false;
  if (is_cheap_to_make(worst)) {
    drop(worst);
  } else {
    this->leave(worst);
  }
  return true;
}

// Whether a buffer that leaves had better be made again than saved and read.
bool Decoder::is_cheap_to_make(int number) const {
  const WholeBuffer& buffer = instance_.buffers[number];
  if (buffer.remade_by < 0 || !held_[number].is_changed) return false;
  if (!buffer.may_be_saved()) return true;
  const Step& step = instance_.steps[buffer.remade_by];
  const bool is_ready = std::all_of(step.uses.begin(), step.uses.end(), [&](int each) {
    const Held& its = held_[each];
    return its.here || (!its.is_changed && instance_.buffers[each].read.engine >= 0);
  });
  return makes_ && is_ready && step.ticks < buffer.save.ticks + buffer.read.ticks;
}

// The place in the sequence of a buffer's next use: what came before is done.
int64_t Decoder::next_use(int number) const {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (const int user : instance_.buffers[number].users) {
    if (place_[user] >= at_) next = std::min(next, place_[user]);
  }
  for (const int again : wanted_again_[number]) {
    if (again >= at_) next = std::min<int64_t>(next, again);
  }
  return next;
}

}  // namespace tilefarm::memory
