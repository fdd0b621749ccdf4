// A check of a test: names the place and the case, and ends the program.
#ifndef TILEFARM_MEMORY_TESTS_CHECK_H_
#define TILEFARM_MEMORY_TESTS_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Where a variable `number` says which case it is.
#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: case %d: %s\n", __FILE__, __LINE__, number, #condition); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (false)

#endif  // TILEFARM_MEMORY_TESTS_CHECK_H_
