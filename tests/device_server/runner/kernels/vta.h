/* What the kernels of the tests call, and the numbers that they call it with. */
#include "vta_runtime.h"

enum { LOAD = 1, COMPUTE = 2, STORE = 3 };
enum { WGT = 1, INP = 2, ACC = 3, OUT = 4 };
