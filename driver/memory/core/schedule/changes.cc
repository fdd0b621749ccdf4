// Which token, and how far: mostly near, as what is far apart rarely has to do with each other.

#include "changes.h"

#include <algorithm>
#include <cmath>

namespace tilefarm::memory {
namespace {

constexpr double kMoved = 0.7;   // of the changes
constexpr double kSaved = 0.2;   // of the transfers that come in; the others leave
constexpr double kMade = 0.5;    // of what may be made again is
constexpr double kFar = 0.1;     // of the moves may go anywhere
constexpr double kNear = 4.0;    // tokens on average, the others

bool contains(const Numbers& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool conflict(const Instance& instance, Token token, Token other, int step) {
  if (token >= 0 && other >= 0) {
    const Token early = step > 0 ? token : other;
    const Token late = step > 0 ? other : token;
    return contains(instance.steps[early].after, static_cast<int>(late));
  }
  if (token < 0 && other < 0) return buffer_of(token) == buffer_of(other);
  const Token transfer = std::min(token, other);
  const Step& its = instance.steps[std::max(token, other)];
  const bool is_save = move_of(transfer) == TILEFARM_MEMORY_SAVE;
  return contains(is_save ? its.changes : its.uses, buffer_of(transfer));
}

// One token elsewhere, over none that it must not pass; loads come along to the front.
void move(const Instance& instance, Tokens& tokens, int64_t at, Random& random) {
  const int step = random.unit() < 0.5 ? 1 : -1;
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t most = count;
  if (random.unit() >= kFar) most = 1 + static_cast<int64_t>(-std::log(1 - random.unit()) * kNear);
  std::vector<int64_t> taken{at};  // places, in the order of the sequence if step < 0
  int64_t to = at;
  while (to + step >= 0 && to + step < count && most > 0) {
    const Token other = tokens[to + step];
    const bool stops = std::any_of(taken.begin(), taken.end(), [&](int64_t each) {
      return conflict(instance, tokens[each], other, step);
    });
    if (!stops) {
      most--;
    } else if (step > 0 || other < 0 || !instance.steps[other].is_load()) {
      break;
    } else {
      taken.insert(taken.begin(), to + step);
    }
    to += step;
  }
  Tokens moved;
  for (const int64_t each : taken) moved.push_back(tokens[each]);
  for (auto each = taken.rbegin(); each != taken.rend(); each++) {
    tokens.erase(tokens.begin() + *each);
  }
  tokens.insert(tokens.begin() + to, moved.begin(), moved.end());
}

// A buffer leaves after a step, and is made again before the next one that uses it.
void make_again(const Instance& instance, Tokens& tokens, int64_t at, int buffer) {
  const auto next = std::find_if(tokens.begin() + at + 1, tokens.end(), [&](Token token) {
    return token >= 0 && contains(instance.steps[token].uses, buffer);
  });
  if (next == tokens.end()) return;
  tokens.insert(next, token_of(TILEFARM_MEMORY_AGAIN, buffer));
  tokens.insert(tokens.begin() + at + 1, token_of(TILEFARM_MEMORY_DROP, buffer));
}

}  // namespace

void change(const Instance& instance, Tokens& tokens, Random& random) {
  constexpr int kCounts[] = {1, 1, 1, 2, 3};
  for (int left = kCounts[random.below(5)]; left > 0; left--) {
    const int64_t at = random.below(static_cast<int64_t>(tokens.size()));
    if (random.unit() < kMoved) {
      move(instance, tokens, at, random);
    } else if (tokens[at] < 0) {
      tokens.erase(tokens.begin() + at);
    } else if (const Numbers& uses = instance.steps[tokens[at]].uses; !uses.empty()) {
      const int buffer = uses[random.below(static_cast<int64_t>(uses.size()))];
      if (instance.buffers[buffer].remade_by >= 0 && random.unit() < kMade) {
        make_again(instance, tokens, at, buffer);
        continue;
      }
      const auto kind = random.unit() < kSaved ? TILEFARM_MEMORY_SAVE : TILEFARM_MEMORY_LEAVE;
      tokens.insert(tokens.begin() + at + 1, token_of(kind, buffer));
    }
  }
}

}  // namespace tilefarm::memory
