// What is remembered of streams: each has a time of its own, however many there are.
#include <set>
#include <utility>
#include <vector>

#include "check.h"
#include "cycle/cycle_memo.h"

using namespace tilefarm;

namespace {

std::vector<Word> counted(size_t length) {
  std::vector<Word> words;
  for (uint64_t k = 0; k < length; ++k) words.push_back({k, ~k});
  return words;
}

CycleResult of(uint64_t cycles) {
  CycleResult result;
  result.cycles = cycles;
  result.spans.resize(3);
  return result;
}

void a_network_of_millions_of_instructions_is_remembered() {
  CycleMemo memo;
  const auto words = counted(300000);
  for (uint64_t k = 0; k < 10; ++k) {
    memo.keep(CycleMemo::key_of(words, Tokens{k}), of(k));
  }
  for (uint64_t k = 0; k < 10; ++k) {
    const CycleResult* found = memo.find(CycleMemo::key_of(words, Tokens{k}));
    CHECK(found != nullptr && found->cycles == k && found->spans.empty());
  }
  CHECK(memo.find(CycleMemo::key_of(words, Tokens{10})) == nullptr);
}

// Every bit counts, and where it stands.
void streams_that_differ_have_keys_that_differ() {
  std::set<CycleMemo::Key> keys;
  size_t streams = 0;
  const auto add = [&](const std::vector<Word>& words, const Tokens& tokens = {}) {
    keys.insert(CycleMemo::key_of(words, tokens));
    ++streams;
  };
  const auto whole = counted(5);
  for (size_t length = 0; length <= whole.size(); ++length) add(counted(length));
  for (size_t k = 0; k < whole.size(); ++k) {
    for (int bit = 0; bit < 64; ++bit) {
      auto low = whole, high = whole;
      low[k].lo ^= uint64_t{1} << bit;
      high[k].hi ^= uint64_t{1} << bit;
      add(low);
      add(high);
    }
  }
  auto swapped = whole;
  std::swap(swapped[1], swapped[3]);
  add(swapped);
  for (int queue = 0; queue < kTokenQueues; ++queue) {
    Tokens tokens{};
    tokens[queue] = 1;
    add(whole, tokens);
  }
  CHECK(keys.size() == streams);
}

void what_is_remembered_has_a_limit() {
  CycleMemo memo;
  for (uint64_t k = 0; k <= CycleMemo::kMostStreams; ++k) {
    memo.keep(CycleMemo::Key{k, k}, of(k));
  }
  CHECK(memo.find({0, 0}) == nullptr);
  CHECK(memo.find({CycleMemo::kMostStreams, CycleMemo::kMostStreams}) != nullptr);
}

void what_is_forgotten_is_unknown() {
  CycleMemo memo;
  memo.keep(CycleMemo::Key{1, 1}, of(1));
  memo.forget();
  CHECK(memo.find({1, 1}) == nullptr);
}

}  // namespace

int main() {
  a_network_of_millions_of_instructions_is_remembered();
  streams_that_differ_have_keys_that_differ();
  what_is_remembered_has_a_limit();
  what_is_forgotten_is_unknown();
}
