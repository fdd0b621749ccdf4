/* @NAME@: a neural network for a processor alone. @CODE@ needs no library.
 *
 * Buffers, each at a multiple of 4096 bytes; offsets are 0:
@BUFFERS@
 * Constants are the content of @WEIGHTS@. Inputs and outputs are float32, see README.txt.
 * The entry answers 0 where it succeeds. Several threads may call it at once, each with an arena,
 * inputs and outputs of its own. */
#ifndef TILEFARM_NETWORK_H_
#define TILEFARM_NETWORK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TILEFARM_BUFFERS = 2 + @INPUTS@ + @OUTPUTS@ };
#define TILEFARM_NBYTES {@NBYTES@}

int32_t @ENTRY@(void *const *buffers, const int64_t *offsets);
@POOL@
#ifdef __cplusplus
}
#endif

#endif
