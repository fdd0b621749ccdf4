/* The VTA runtime's C functions that the kernels of the tests call. */
#include <stdint.h>

extern void* VTATLSCommandHandle(void);
extern void* VTABufferCPUPtr(void* cmd, void* buffer);
extern void VTALoadBuffer2D(void* cmd, void* from, uint32_t from_offset, uint32_t x, uint32_t y,
                            uint32_t stride, uint32_t x_pad_0, uint32_t y_pad_0, uint32_t x_pad_1,
                            uint32_t y_pad_1, uint32_t sram, uint32_t memory);
extern void VTAStoreBuffer2D(void* cmd, uint32_t sram, uint32_t memory, void* to,
                             uint32_t to_offset, uint32_t x, uint32_t y, uint32_t stride);
extern void VTAUopPush(uint32_t mode, uint32_t reset, uint32_t dst, uint32_t src, uint32_t wgt,
                       uint32_t opcode, uint32_t use_imm, int32_t imm);
extern void VTAUopLoopBegin(uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt);
extern void VTAUopLoopEnd(void);
extern int VTAPushGEMMOp(void** handle, int (*record)(void*), void* closure, int nbytes);
extern int VTAPushALUOp(void** handle, int (*record)(void*), void* closure, int nbytes);
extern int VTADepPush(void* cmd, int from, int to);
extern int VTADepPop(void* cmd, int from, int to);
extern void VTASynchronize(void* cmd, uint32_t wait_cycles);

enum { LOAD = 1, COMPUTE = 2, STORE = 3 };
enum { WGT = 1, INP = 2, ACC = 3, OUT = 4 };
