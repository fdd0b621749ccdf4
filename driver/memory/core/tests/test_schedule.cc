// Random small problems: schedules keep to what steps wait for, to their engines and to the memory,
// by bytes and by addresses.

#include <algorithm>
#include <random>
#include <vector>

#include "schedule/schedule_search.h"
#include "tests/check.h"

namespace {

using namespace tilefarm::memory;

constexpr int kCases = 400;
constexpr int kEngines = 3;  // what computes, what reads, what saves

// A chain with branches: step k writes buffer k and reads some of those before it.
Instance random_instance(std::mt19937& random) {
  auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Instance made{};
  made.barriers = pick(0, 3);
  made.instances = {pick(1, 2), 1, 1};
  made.memories = {{pick(0, 3) ? pick(12, 30) : 0, 0, {}}};
  made.memories[0].end = made.memories[0].capacity;
  const int steps = pick(1, 12);
  for (int at = 0; at < steps; at++) {
    const int64_t nbytes = pick(0, 6);
    made.buffers.push_back({nbytes, (nbytes + 1) / 2 * 2, 2, -1, 0, false, pick(0, 9) == 0,
                            {2, pick(1, 3)}, {1, pick(1, 3)}, pick(0, 2) ? -1 : at, {at}});
    Step step{0, pick(1, 5), false, {}, {}, {at}, {at}, {}, {}};
    for (int reads = at ? pick(1, 2) : 0; reads > 0; reads--) {
      const int from = pick(std::max(0, at - 4), at - 1);
      if (std::count(step.before.begin(), step.before.end(), from)) continue;
      step.before.push_back(from);
      step.uses.push_back(from);
      made.steps[from].after.push_back(at);
      made.buffers[from].users.push_back(at);
      if (made.buffers[from].nbytes == nbytes) step.in_place.emplace_back(from, at);
    }
    made.steps.push_back(step);
  }
  return made;
}

bool meet(int64_t begin, int64_t end, int64_t other_begin, int64_t other_end) {
  return begin < other_end && other_begin < end;
}

void check_engines(int number, const Instance& instance, const Decoded& found) {
  std::vector<int64_t> ends(instance.steps.size(), -1);
  for (const auto& a : found.actions) {
    CHECK(a.begin >= 0 && a.engine < kEngines && a.instance < instance.instances[a.engine]);
    CHECK(a.end <= found.makespan);
    if (a.token >= 0) ends[a.token] = a.end;
    int running = 0;
    for (const auto& b : found.actions) {
      running += b.begin <= a.begin && a.begin < b.end;
      const bool same = a.engine == b.engine && a.instance == b.instance;
      CHECK(&a == &b || !same || !meet(a.begin, a.end, b.begin, b.end));
    }
    CHECK(!instance.barriers || running <= instance.barriers);
  }
  for (const auto& a : found.actions) {
    if (a.token < 0) continue;
    for (const int before : instance.steps[a.token].before) CHECK(ends[before] <= a.begin);
  }
  CHECK(std::count(ends.begin(), ends.end(), -1) == 0);
}

void check_memory(int number, const Instance& instance, const Decoded& found, bool is_placed) {
  const int64_t capacity = instance.memories[0].capacity;
  for (const auto& a : found.residencies) {
    int64_t live = 0;
    for (const auto& b : found.residencies) {
      if (b.begin <= a.begin && a.begin < b.end) live += instance.buffers[b.buffer].nbytes;
      if (!is_placed || &a == &b || !meet(a.begin, a.end, b.begin, b.end)) continue;
      const int64_t a_end = a.offset + instance.buffers[a.buffer].nbytes;
      const int64_t b_end = b.offset + instance.buffers[b.buffer].nbytes;
      CHECK(a.offset == a_end || b.offset == b_end || !meet(a.offset, a_end, b.offset, b_end));
    }
    CHECK(!capacity || live <= capacity);
    CHECK(!is_placed || (a.offset >= 0 && a.offset % 2 == 0));
    const int64_t end = a.offset + instance.buffers[a.buffer].nbytes;
    CHECK(!is_placed || !capacity || end <= capacity);
  }
  for (const auto& a : found.actions) {
    if (a.token < 0) continue;
    const auto& pairs = instance.steps[a.token].in_place;
    for (const int buffer : instance.steps[a.token].uses) {
      const bool gives = std::any_of(pairs.begin(), pairs.end(),
                                     [&](const auto& pair) { return pair.first == buffer; });
      CHECK(std::any_of(found.residencies.begin(), found.residencies.end(), [&](const auto& r) {
        const bool is_taken = gives && r.end == a.begin;
        return r.buffer == buffer && r.begin <= a.begin && (is_taken || a.end <= r.end);
      }));
    }
  }
}

}  // namespace

int main() {
  int found = 0;
  int moved = 0;
  int again = 0;
  for (int number = 0; number < kCases; number++) {
    std::mt19937 random(number);
    const Instance instance = random_instance(random);
    for (const bool is_placed : {false, true}) {
      const tilefarm_memory_search_limits limits{is_placed, 7, 200, 0, 60.0, nullptr};
      for (const Decoded& each : search_schedules(instance, {}, limits).best) {
        check_engines(number, instance, each);
        check_memory(number, instance, each, is_placed);
        found++;
        moved += each.extra_nbytes > 0;
        again += std::any_of(each.actions.begin(), each.actions.end(), [](const auto& a) {
          return a.token < 0 && move_of(a.token) == TILEFARM_MEMORY_AGAIN;
        });
      }
    }
  }
  const int number = -1;
  CHECK(found > kCases && moved > kCases / 4 && again > kCases / 4);
}
