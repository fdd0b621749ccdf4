// Random small problems: the smallest peak is that of trying everything, and offsets hold it.

#include <algorithm>
#include <random>
#include <vector>

#include "tests/check.h"
#include "tilefarm_memory.h"

namespace {

constexpr int kCases = 4000;
constexpr int kTooMuch = 64;

struct Case {
  std::vector<int64_t> nbytes, alignment, fixed, first{0}, lower, upper, begin, end;

  int buffers() const { return static_cast<int>(nbytes.size()); }
  tilefarm_memory_problem rows() const {
    return {buffers(),    nbytes.data(), alignment.data(), fixed.data(),
            first.data(), lower.data(),  upper.data(),     static_cast<int64_t>(begin.size()),
            begin.data(), end.data()};
  }
  bool meet(int a, int b) const {
    for (int64_t i = first[a]; i < first[a + 1]; i++) {
      for (int64_t j = first[b]; j < first[b + 1]; j++) {
        if (lower[i] < upper[j] && lower[j] < upper[i]) return true;
      }
    }
    return false;
  }
  // Whether a buffer can lie at an offset beside those before it.
  bool fits(int i, int64_t offset, const std::vector<int64_t>& offsets) const {
    const int64_t top = offset + nbytes[i];
    for (size_t at = 0; fixed[i] < 0 && at < begin.size(); at++) {
      if (offset < end[at] && begin[at] < top) return false;
    }
    for (int j = 0; j < i; j++) {
      if (meet(i, j) && offset < offsets[j] + nbytes[j] && offsets[j] < top) return false;
    }
    return true;
  }
};

Case random_case(std::mt19937& random) {
  auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Case made;
  const int aligned = pick(0, 2);
  const bool again = pick(0, 2) == 0;
  for (int i = pick(1, 5); i > 0; i--) {
    const int lower = pick(0, 5);
    const int upper = lower + pick(1, 3);
    made.lower.push_back(lower);
    made.upper.push_back(upper);
    if (again && pick(0, 1)) {
      made.lower.push_back(upper + pick(1, 2));
      made.upper.push_back(made.lower.back() + pick(1, 2));
    }
    made.first.push_back(static_cast<int64_t>(made.lower.size()));
    made.nbytes.push_back(pick(1, 5));
    made.alignment.push_back(aligned == 0 ? 1 : aligned == 1 ? 4 : 1 << pick(0, 2));
    made.fixed.push_back(-1);
  }
  if (pick(0, 3) == 0) {
    made.begin.push_back(pick(0, 5));
    made.end.push_back(made.begin.back() + pick(1, 3));
  } else if (pick(0, 3) == 0) {
    made.fixed[0] = made.alignment[0] * pick(0, 4);
  }
  return made;
}

int64_t least_peak(const Case& each, int i, int64_t peak, int64_t best,
                   std::vector<int64_t>& offsets) {
  if (i == each.buffers()) return peak;
  const int64_t only = each.fixed[i];
  const int64_t last = only < 0 ? best - each.nbytes[i] : only;
  for (int64_t o = std::max<int64_t>(only, 0); o <= last; o += each.alignment[i]) {
    const int64_t higher = std::max(peak, o + each.nbytes[i]);
    if (higher >= best || !each.fits(i, o, offsets)) continue;
    offsets[i] = o;
    best = std::min(best, least_peak(each, i + 1, higher, best, offsets));
  }
  return best;
}

tilefarm_memory_result allocated(const Case& each, int64_t capacity,
                                 std::vector<int64_t>& offsets) {
  const tilefarm_memory_problem rows = each.rows();
  const tilefarm_memory_limits limits{capacity, 0, 7, 1000000, 60.0, nullptr};
  tilefarm_memory_result result{};
  offsets.assign(each.buffers(), -1);
  if (tilefarm_memory_allocate(&rows, &limits, offsets.data(), &result)) std::abort();
  return result;
}

void check_offsets(const Case& each, const std::vector<int64_t>& offsets, int64_t peak,
                   int number) {
  for (int i = 0; i < each.buffers(); i++) {
    CHECK(offsets[i] >= 0 && offsets[i] + each.nbytes[i] <= peak);
    CHECK(offsets[i] % each.alignment[i] == 0);
    CHECK(each.fixed[i] < 0 || offsets[i] == each.fixed[i]);
    CHECK(each.fits(i, offsets[i], offsets));
  }
}

void the_smallest_peak_is_found_and_nothing_below(int number, std::mt19937& random) {
  const Case each = random_case(random);
  std::vector<int64_t> offsets(each.buffers());
  const int64_t least = least_peak(each, 0, 0, kTooMuch, offsets);
  const tilefarm_memory_result smallest = allocated(each, -1, offsets);
  CHECK(smallest.status == TILEFARM_MEMORY_FOUND && smallest.is_optimal);
  CHECK(smallest.peak_nbytes == least && smallest.bound_nbytes == least);
  check_offsets(each, offsets, least, number);
  CHECK(allocated(each, least, offsets).status == TILEFARM_MEMORY_FOUND);
  check_offsets(each, offsets, least, number);
  CHECK(allocated(each, least - 1, offsets).status == TILEFARM_MEMORY_INFEASIBLE);
}

void a_stop_ends_the_search() {
  const int number = 0;
  Case each;
  std::mt19937 random(1);
  for (int i = 0; i < 200; i++) {
    each.lower.push_back(i / 2);
    each.upper.push_back(i / 2 + 1 + static_cast<int>(random() % 60));
    each.first.push_back(i + 1);
    each.nbytes.push_back(1000 + static_cast<int>(random() % 100000));
    each.alignment.push_back(1);
    each.fixed.push_back(-1);
  }
  const tilefarm_memory_problem rows = each.rows();
  const int32_t stop = 1;
  const tilefarm_memory_limits limits{-1, 0, 7, UINT64_MAX, 600.0, &stop};
  tilefarm_memory_result result{};
  std::vector<int64_t> offsets(each.buffers());
  CHECK(tilefarm_memory_allocate(&rows, &limits, offsets.data(), &result) == 0);
  CHECK(result.status == TILEFARM_MEMORY_FOUND && result.nodes < 1000);
}

}  // namespace

int main() {
  std::mt19937 random(20231);
  for (int number = 0; number < kCases; number++) {
    the_smallest_peak_is_found_and_nothing_below(number, random);
  }
  a_stop_ends_the_search();
  return 0;
}
