// Last words: on a fatal signal the child tells what happened, then dies of that signal.
#ifndef TILEFARM_RUNNER_CRASH_H_
#define TILEFARM_RUNNER_CRASH_H_

#include "artifact.h"

namespace tilefarm::runner {

// Installs handlers, on a stack of their own, that write a kFault reply to `fd`.
void report_crashes_to(int fd);

// Gives the calling thread a stack of its own for the handlers.
void have_crash_stack();

// Where the artifact lies, so that an address can be named within it.
void name_addresses_within(AddressRange artifact);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_CRASH_H_
