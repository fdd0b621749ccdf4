// The process that runs one artifact: it loads it once, runs what it is asked, and has given up its
// rights by then.
#ifndef TILEFARM_RUNNER_CHILD_H_
#define TILEFARM_RUNNER_CHILD_H_

#include <string>

#include "vta_library.h"

namespace tilefarm::runner {

// Serves load (once) and run (many) requests on `fd` until the other side has gone. After loading,
// nothing can be opened any more; contents and results come as descriptors.
//
// `sandbox` says what the child cannot do; `threads` share the work of a kernel, the one that
// serves included.
[[noreturn]] void be_child(int fd, VtaLibrary& library, const std::string& sandbox,
                           unsigned threads);

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_CHILD_H_
