// The whole test framework: a condition that must hold, and a failure that must come.
#ifndef TILEFARM_TESTS_CHECK_H_
#define TILEFARM_TESTS_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "error.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

// The reason of the Fault that `body` throws with this status; fails the test when it does not.
template <typename Body>
std::string fault_of(tilefarm_vta_status status, const Body& body) {
  try {
    body();
  } catch (const tilefarm::Fault& fault) {
    if (fault.status == status) return fault.why;
    std::fprintf(stderr, "status %d instead of %d: %s\n", fault.status, status, fault.why.c_str());
    std::exit(1);
  }
  std::fprintf(stderr, "no fault of status %d\n", status);
  std::exit(1);
}

#define CHECK_FAULT(status, body) CHECK(!fault_of(status, [&] { body; }).empty())

#endif  // TILEFARM_TESTS_CHECK_H_
