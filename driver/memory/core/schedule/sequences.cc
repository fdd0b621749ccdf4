// Steps, each after those that it waits for, otherwise by some key.

#include "sequences.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

namespace tilefarm::memory {
namespace {

constexpr int kLeads[] = {0, 1, 2, 4, 8};  // steps that are no loads, before a load's first user

using Key = std::array<int64_t, 3>;

Tokens arranged(const Instance& instance, const std::vector<Key>& keys) {
  Numbers left(instance.steps.size(), 0);
  for (const Step& step : instance.steps) {
    for (const int each : step.after) left[each]++;
  }
  using Ready = std::pair<Key, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (int at = 0; at < static_cast<int>(left.size()); at++) {
    if (left[at] == 0) ready.emplace(keys[at], at);
  }
  Tokens order;
  while (!ready.empty()) {
    const int at = ready.top().second;
    ready.pop();
    order.push_back(at);
    for (const int each : instance.steps[at].after) {
      if (--left[each] == 0) ready.emplace(keys[each], each);
    }
  }
  return order;
}

std::vector<Key> longest_path(const Instance& instance, const Tokens& given) {
  std::vector<Key> keys(instance.steps.size(), Key{});
  for (auto at = given.rbegin(); at != given.rend(); at++) {
    int64_t after = 0;
    for (const int each : instance.steps[*at].after) after = std::max(after, -keys[each][0]);
    keys[*at][0] = -(after + instance.steps[*at].ticks);
  }
  return keys;
}

// The order with each load begun `lead` others before its first user.
Tokens with_loads_ahead(const Instance& instance, const Tokens& order, int lead) {
  std::vector<int64_t> rank(instance.steps.size(), -1);
  int64_t others = 0;
  for (const Token at : order) {
    if (!instance.steps[at].is_load()) rank[at] = others++;
  }
  std::vector<Key> keys(instance.steps.size());
  for (size_t at = 0; at < keys.size(); at++) {
    const Step& step = instance.steps[at];
    if (rank[at] < 0) {
      int64_t first = others;
      for (const int each : step.after) {
        if (rank[each] >= 0) first = std::min(first, rank[each]);
      }
      keys[at] = {std::max<int64_t>(first - lead, 0), 0, first};
    } else if (!step.after.empty() || !step.changes.empty() || !step.behind.empty()) {
      keys[at] = {rank[at], 1, 0};
    } else {
      int64_t last = 0;
      for (const int each : step.before) last = std::max(last, rank[each]);
      keys[at] = {last, 2, rank[at]};
    }
  }
  return arranged(instance, keys);
}

}  // namespace

std::vector<Tokens> first_sequences(const Instance& instance) {
  const Tokens given = arranged(instance, std::vector<Key>(instance.steps.size(), Key{}));
  std::vector<Tokens> found;
  for (const Tokens& order : {given, arranged(instance, longest_path(instance, given))}) {
    for (const int lead : kLeads) {
      Tokens made = with_loads_ahead(instance, order, lead);
      if (std::find(found.begin(), found.end(), made) == found.end()) {
        found.push_back(std::move(made));
      }
    }
  }
  return found;
}

Tokens random_sequence(const Instance& instance, Random& random) {
  std::vector<Key> keys(instance.steps.size(), Key{});
  for (Key& key : keys) key[0] = static_cast<int64_t>(random.next() >> 1);
  const int lead = kLeads[random.below(std::size(kLeads))];
  return with_loads_ahead(instance, arranged(instance, keys), lead);
}

}  // namespace tilefarm::memory
