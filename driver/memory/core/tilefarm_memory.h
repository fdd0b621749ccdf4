/* The memory scheduler's core as a C interface: offsets for buffers whose lifetimes are given, and
 * schedules of operations and transfers.
 *
 * All input is trusted: the Python doors check it, and that no sum of it leaves 62 bits. Rows of
 * parallel arrays are buffers, steps, engines and memories.
 */
#ifndef TILEFARM_MEMORY_H_
#define TILEFARM_MEMORY_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Another one for every change of what follows: a caller asks the library for its own first. */
#define TILEFARM_MEMORY_INTERFACE 2

__attribute__((visibility("default"))) int32_t tilefarm_memory_interface(void);

typedef enum {
  TILEFARM_MEMORY_FOUND = 0,      /* offsets lie within the capacity, or are the best found */
  TILEFARM_MEMORY_INFEASIBLE = 1, /* proved: there are no such offsets */
  TILEFARM_MEMORY_NOT_FOUND = 2   /* the limits ended the search */
} tilefarm_memory_status;

/* A buffer may have several lifetimes [lower, upper) and keeps its offset in all. */
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

/* One list a row: items[first[row]] to items[first[row + 1]]. */
typedef struct {
  const int64_t* first;
  const int64_t* items;
} tilefarm_memory_lists;

/* What is scheduled; driver/memory/instance.py says what each means. An engine of -1: it cannot. */
typedef struct {
  int64_t steps;
  const int64_t* engine;
  const int64_t* ticks;
  const int64_t* takes_all;
  tilefarm_memory_lists before;
  tilefarm_memory_lists behind;
  tilefarm_memory_lists uses;
  tilefarm_memory_lists changes;
  tilefarm_memory_lists in_place; /* operand and result, in turns */
  int64_t buffers;
  const int64_t* nbytes;
  const int64_t* aligned_nbytes;
  const int64_t* alignment;
  const int64_t* pinned_at; /* -1: anywhere */
  const int64_t* memory;
  const int64_t* is_present;
  const int64_t* is_kept;
  const int64_t* save_engine;
  const int64_t* save_ticks;
  const int64_t* read_engine;
  const int64_t* read_ticks;
  const int64_t* remade_by; /* the step that may run again to bring it back; -1: none */
  int64_t engines;
  const int64_t* instances;
  int64_t barriers; /* each step and transfer holds one as it runs; 0: endless */
  int64_t memories;
  const int64_t* capacity; /* bytes that count; 0: endless */
  const int64_t* end;      /* of addresses; 0: endless */
  const int64_t* first_reserved;
  const int64_t* reserved_begin;
  const int64_t* reserved_end;
} tilefarm_memory_instance;

/* What a buffer does between its uses. Its token is -1 - move - 5 * buffer; that of a step is its
 * number. */
typedef enum {
  TILEFARM_MEMORY_LEAVE = 0,  /* saved before, if need be */
  TILEFARM_MEMORY_RETURN = 1, /* is read, or made again where nobody saved it */
  TILEFARM_MEMORY_SAVE = 2,
  TILEFARM_MEMORY_AGAIN = 3, /* is made again */
  TILEFARM_MEMORY_DROP = 4   /* leaves without being saved */
} tilefarm_memory_move;

typedef struct {
  int64_t token;
  int64_t engine;
  int64_t instance; /* -1: all */
  int64_t begin;
  int64_t end;
} tilefarm_memory_action;

typedef struct {
  int64_t buffer;
  int64_t begin;
  int64_t end;
  int64_t is_brought; /* by what `by` says */
  int64_t by;         /* a token */
  int64_t offset;     /* -1: none was looked for */
} tilefarm_memory_residency;

/* Its arrays are the result's. */
typedef struct {
  int64_t makespan;
  int64_t extra_nbytes;
  int64_t peak_nbytes; /* of bytes, not of addresses */
  int64_t tokens;
  const int64_t* token;
  int64_t actions;
  const tilefarm_memory_action* action;
  int64_t residencies;
  const tilefarm_memory_residency* residency;
} tilefarm_memory_schedule;

typedef struct {
  int32_t is_placed; /* every buffer is given an offset as it comes */
  uint64_t seed;
  int64_t tries;       /* sequences at most; some are always looked at */
  int64_t bound;       /* ends at a makespan of this without needless transfers */
  double seconds;      /* at most */
  const int32_t* stop; /* ends the search once it is not zero; may be NULL */
} tilefarm_memory_search_limits;

typedef struct {
  int64_t decoded; /* sequences */
  int32_t is_cut_short;
  int64_t schedules; /* the best one first; none where nothing has room */
  const tilefarm_memory_schedule* schedule;
  void* owner;
} tilefarm_memory_schedules;

/* The best schedules that a search finds; favourites are its first sequences. Returns 0, or 1 out
 * of memory. What it returned is to be freed. */
__attribute__((visibility("default"))) int32_t tilefarm_memory_schedule_search(
    const tilefarm_memory_instance* instance, const tilefarm_memory_lists* favourites,
    int64_t favourite_count, const tilefarm_memory_search_limits* limits,
    tilefarm_memory_schedules* result);

/* The schedule of one sequence, if there is one. */
__attribute__((visibility("default"))) int32_t tilefarm_memory_decode(
    const tilefarm_memory_instance* instance, const int64_t* token, int64_t tokens,
    tilefarm_memory_schedules* result);

__attribute__((visibility("default"))) void tilefarm_memory_free(tilefarm_memory_schedules* result);

#ifdef __cplusplus
}
#endif

#endif  // TILEFARM_MEMORY_H_
