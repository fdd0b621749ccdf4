/* The exact memory allocator as a C interface: offsets for buffers whose lifetimes are given.
 *
 * All input is trusted: the Python door checks it, and that no sum of it leaves 62 bits. Buffers
 * are rows of parallel arrays; one may have several lifetimes [lower, upper) and keeps its offset
 * in all.
 */
#ifndef TILEFARM_MEMORY_H_
#define TILEFARM_MEMORY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TILEFARM_MEMORY_FOUND = 0,      /* offsets lie within the capacity, or are the best found */
  TILEFARM_MEMORY_INFEASIBLE = 1, /* proved: there are no such offsets */
  TILEFARM_MEMORY_NOT_FOUND = 2   /* the limits ended the search */
} tilefarm_memory_status;

typedef struct {
  int64_t buffers;
  const int64_t* nbytes;
  const int64_t* alignment;
  const int64_t* fixed_offset;   /* -1: anywhere */
  const int64_t* first_lifetime; /* buffers + 1 indices into lower and upper */
  const int64_t* lower;
  const int64_t* upper;
  int64_t reserved;
  const int64_t* reserved_begin;
  const int64_t* reserved_end;
} tilefarm_memory_problem;

typedef struct {
  int64_t capacity_nbytes; /* -1: as much as it takes */
  int32_t smallest;        /* look for the smallest peak, not for any that fits */
  uint64_t seed;
  uint64_t nodes;      /* of the search at most */
  double seconds;      /* at most; how far the search has come never depends on it otherwise */
  const int32_t* stop; /* ends the search once it is not zero; may be NULL */
} tilefarm_memory_limits;

typedef struct {
  int32_t status;
  int32_t is_optimal; /* no placement has a smaller peak */
  int64_t peak_nbytes;
  int64_t bound_nbytes; /* no placement has a smaller peak than this */
  uint64_t nodes;
} tilefarm_memory_result;

/* Fills offsets (one for each buffer) where the status is FOUND. Returns 0, or 1 out of memory. */
__attribute__((visibility("default"))) int32_t tilefarm_memory_allocate(
    const tilefarm_memory_problem* problem, const tilefarm_memory_limits* limits, int64_t* offsets,
    tilefarm_memory_result* result);

#ifdef __cplusplus
}
#endif

#endif  // TILEFARM_MEMORY_H_
