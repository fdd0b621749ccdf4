/* The VTA runtime of tilefarm beyond the original's own functions: configuration, errors, counters.
 *
 * The original runtime's functions, those of vta_runtime.h, are exported as well. One process holds
 * one accelerator; nothing here is thread safe. Nothing here aborts: a failure is remembered, and
 * until it is cleared every queue function does nothing.
 */
#ifndef TILEFARM_VTA_H_
#define TILEFARM_VTA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TILEFARM_VTA_API __attribute__((visibility("default")))

typedef enum {
  TILEFARM_VTA_OK = 0,
  TILEFARM_VTA_BAD_CONFIG = 1,      /* no hardware can have these parameters */
  TILEFARM_VTA_BAD_ARGUMENT = 2,    /* a null or unknown handle, stage, memory or size */
  TILEFARM_VTA_FIELD_OVERFLOW = 3,  /* a value does not fit its instruction field */
  TILEFARM_VTA_BAD_RECORDING = 4,   /* micro-op kernel recorded against the rules */
  TILEFARM_VTA_BAD_INSTRUCTION = 5, /* an instruction that hardware would hang on or misread */
  TILEFARM_VTA_SRAM_RANGE = 6,      /* an index beyond an on-chip buffer */
  TILEFARM_VTA_DRAM_RANGE = 7,      /* a DRAM access that is not inside one live buffer */
  TILEFARM_VTA_DEADLOCK = 8,        /* modules wait for tokens that nobody will give */
  TILEFARM_VTA_TOKENS_LEFT = 9,     /* tokens or waits remain where there must be none */
  TILEFARM_VTA_NO_MEMORY = 10,      /* the host or the address space is exhausted */
  TILEFARM_VTA_HAZARD = 11, /* two modules touch an element in an order that no token fixes */
  TILEFARM_VTA_UNSUPPORTED =
      12, /* the chosen hardware lacks it or does it differently; see findings */
  TILEFARM_VTA_TOO_LONG = 13, /* more micro-ops than tilefarm_vta_limit_uops allows */
  TILEFARM_VTA_LOST = 14      /* the process that plays the accelerator has ended */
} tilefarm_vta_status;

/* Whose rules a program is held to. FUNCTIONAL: those of the original's functional simulator. The
 * others add findings where that hardware hangs or computes something else. */
typedef enum {
  TILEFARM_VTA_FUNCTIONAL = 0,
  TILEFARM_VTA_CHISEL = 1,
  TILEFARM_VTA_HLS = 2
} tilefarm_vta_strictness;

/* Whose time is counted: the Chisel design with its tsim memory, or (an estimate) the HLS design.
 */
typedef enum { TILEFARM_VTA_TIME_CHISEL = 0, TILEFARM_VTA_TIME_HLS = 1 } tilefarm_vta_time_model;

/* What cycles are worth: equal to the RTL's, beyond what the RTL can be, or an estimate. */
typedef enum {
  TILEFARM_VTA_BASIS_RTL = 0,
  TILEFARM_VTA_BASIS_EXTRAPOLATED = 1,
  TILEFARM_VTA_BASIS_ESTIMATE = 2
} tilefarm_vta_basis;

/* Bits of `features`: the ALU has MUL, which the Chisel and HLS designs lack; micro-ops are managed
 * as the original runtime does, which loads equal ones again for each call site. */
typedef enum { TILEFARM_VTA_ALU_MUL = 1, TILEFARM_VTA_ORIGINAL_UOP_CACHE = 2 } tilefarm_vta_feature;

/* The keys of vta_config.json (log2 values), then the bus and memory behind it. */
typedef struct {
  int32_t log_batch, log_block;
  int32_t log_inp_width, log_wgt_width, log_acc_width;
  int32_t log_uop_buff_size, log_inp_buff_size, log_wgt_buff_size, log_acc_buff_size;
  int32_t bus_nbytes, log_burst_beats, dram_delay_cycles, queue_entries, outstanding_bursts;
  int32_t functional_only; /* 1: results only, cycles stay 0 */
  int32_t strictness;      /* tilefarm_vta_strictness */
  int32_t time_model;      /* tilefarm_vta_time_model */
  int32_t features;        /* tilefarm_vta_feature, added */
} tilefarm_vta_config;

/* What the accelerator did since tilefarm_vta_clear_counters; padding is not counted as moved.
 *
 * Every cycle of a module is busy (it works), stalled, or idle (between instructions, or after its
 * last one), and the five add up to `cycles`. Causes of a stall: `token`, the next instruction
 * waits for another module; `queue`, fetch has not delivered the next instruction; `memory`, a
 * started instruction waits for DRAM. */
typedef struct {
  uint64_t cycles, instructions, gemm_uops, alu_uops;
  uint64_t load_busy_cycles, compute_busy_cycles, store_busy_cycles;
  uint64_t inp_load_nbytes, wgt_load_nbytes, acc_load_nbytes, uop_load_nbytes, out_store_nbytes;
  uint64_t load_token_stall_cycles, load_queue_stall_cycles, load_memory_stall_cycles;
  uint64_t compute_token_stall_cycles, compute_queue_stall_cycles, compute_memory_stall_cycles;
  uint64_t store_token_stall_cycles, store_queue_stall_cycles, store_memory_stall_cycles;
} tilefarm_vta_counters;

/* Where a program would go wrong on the chosen hardware. `severity` is 1 (warning) or 2 (error);
 * `instruction` is a position in its stream. */
typedef struct {
  uint32_t severity, instruction;
  char rule[16];
  char text[232];
} tilefarm_vta_finding;

/* One instruction on module 0 (load), 1 (compute) or 2 (store): busy in [begin_cycle, end_cycle).
 */
typedef struct {
  uint64_t begin_cycle, end_cycle;
  uint32_t module, instruction;
  char name[48];
} tilefarm_vta_event;

/* Starts over as another accelerator: drops all buffers, recorded kernels, queues and errors. */
TILEFARM_VTA_API int tilefarm_vta_configure(const tilefarm_vta_config* config);

/* On-chip buffers zero, tokens gone, queue empty, error cleared; DRAM and recorded kernels stay. */
TILEFARM_VTA_API void tilefarm_vta_reset(void);

/* Status of the first failure since it was last cleared; its reason goes to `why`, terminated. */
TILEFARM_VTA_API int tilefarm_vta_last_error(char* why, size_t nbytes);
TILEFARM_VTA_API void tilefarm_vta_clear_error(void);

/* Fails with TOKENS_LEFT unless the queue is synchronized and no token is left: between two
 * kernels. */
TILEFARM_VTA_API int tilefarm_vta_check_idle(void);

TILEFARM_VTA_API void tilefarm_vta_clear_counters(void);
TILEFARM_VTA_API void tilefarm_vta_read_counters(tilefarm_vta_counters* out);

/* Timeline of every run since clear_counters, while recording is on; runs follow one another. */
TILEFARM_VTA_API void tilefarm_vta_record_timeline(int on);
TILEFARM_VTA_API size_t tilefarm_vta_read_timeline(tilefarm_vta_event* out, size_t max_events);

/* Findings of every run since clear_counters, in order; at most one per rule and instruction, and
 * the first few of each rule. A run with an error among them ends with UNSUPPORTED, after it has
 * done everything that the functional rules say. */
TILEFARM_VTA_API size_t tilefarm_vta_read_findings(tilefarm_vta_finding* out, size_t max_findings);

/* What the cycles of the present configuration are worth: a tilefarm_vta_basis. */
TILEFARM_VTA_API int tilefarm_vta_timing_basis(void);

/* Runs with more executed micro-ops fail with TOO_LONG; 2^31 until something else is said. */
TILEFARM_VTA_API void tilefarm_vta_limit_uops(uint64_t limit);

/* The implementations of the matrix unit that this machine can run, separated by spaces, best
 * first; and the choice of one of them, which resets the accelerator. BAD_ARGUMENT for an unknown
 * name. */
TILEFARM_VTA_API const char* tilefarm_vta_vector_paths(void);
TILEFARM_VTA_API int tilefarm_vta_use_vector_path(const char* name);

/* Streams as programs: while recording is on, every synchronization keeps its instructions, and all
 * buffers before and after it as one image that begins at address 0. Switching it on forgets what
 * was recorded. */
typedef struct {
  size_t instructions, image_nbytes;
  tilefarm_vta_counters counters;
} tilefarm_vta_recorded;
TILEFARM_VTA_API void tilefarm_vta_record_streams(int on);
TILEFARM_VTA_API size_t tilefarm_vta_recorded_streams(void);
TILEFARM_VTA_API int tilefarm_vta_describe_recorded(size_t stream, tilefarm_vta_recorded* out);
/* Fills two words per instruction, and those parts of the images (which must be zero) that buffers
 * occupy. */
TILEFARM_VTA_API int tilefarm_vta_read_recorded(size_t stream, uint64_t* instructions,
                                                uint8_t* before, uint8_t* after);

/* Runs `count` raw instructions (two words each, low first) on a DRAM image that begins at address
 * 0. Starts from a reset. Counters, timeline and findings are those of this run. */
TILEFARM_VTA_API int tilefarm_vta_run_stream(const uint64_t* instructions, size_t count,
                                             uint8_t* dram, size_t dram_nbytes,
                                             tilefarm_vta_counters* out);

/* One instruction (two words, low first) of the present configuration: `again` gets it as its
 * fields are encoded, `text` its line as `tilefarm vta show` prints it, terminated, without the
 * number. */
TILEFARM_VTA_API int tilefarm_vta_disassemble(const uint64_t* instruction, uint64_t* again,
                                              char* text, size_t nbytes);
/* The same for a micro-op: `indices` gets dst, src and wgt. */
TILEFARM_VTA_API int tilefarm_vta_decode_uop(uint32_t uop, uint32_t* again, uint32_t* indices);

/* A reset, counters cleared, and recording of the timeline on or off: a call of a program begins.
 */
TILEFARM_VTA_API void tilefarm_vta_begin_call(int record_timeline);

/* An accelerator in a process of its own, whose counters the programs that use it cannot reach.
 * Both processes are copies of one, and are given one file in memory, in which their buffers lie
 * from then on; whatever was allocated, called or failed before is forgotten. The one that runs
 * programs then connects: its streams, and where its calls begin, go to the other end of the
 * socket. The other serves: tilefarm_vta_serve obeys one request, and returns 0 when there will be
 * no more of them; given another file, it may serve another process. After the first failure it
 * refuses all streams until its calls are forgotten; tilefarm_vta_last_error has the reason. */
TILEFARM_VTA_API int tilefarm_vta_share_memory(int file, uint64_t nbytes);
TILEFARM_VTA_API int tilefarm_vta_connect(int socket);
TILEFARM_VTA_API int tilefarm_vta_serve(int socket);

/* Calls that were served, in order; those in a row that count the same are one entry. Reading ends
 * the last one. Where its timeline was recorded, tilefarm_vta_read_timeline has it. */
typedef struct {
  uint64_t calls;
  tilefarm_vta_counters each;
} tilefarm_vta_calls;
TILEFARM_VTA_API size_t tilefarm_vta_read_calls(tilefarm_vta_calls* out, size_t max_entries);
TILEFARM_VTA_API void tilefarm_vta_forget_calls(void);

/* Version, compiler and vector path: what has an influence on results or speed. */
TILEFARM_VTA_API const char* tilefarm_vta_build_id(void);

#ifdef __cplusplus
}
#endif

#endif /* TILEFARM_VTA_H_ */
