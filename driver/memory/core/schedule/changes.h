// Small changes of a sequence: a token elsewhere, a transfer more or less.

#ifndef TILEFARM_MEMORY_SCHEDULE_CHANGES_H_
#define TILEFARM_MEMORY_SCHEDULE_CHANGES_H_

#include "decoder.h"
#include "instance.h"
#include "random.h"

namespace tilefarm::memory {

// One to three changes; the order that steps must keep is kept.
void change(const Instance& instance, Tokens& tokens, Random& random);

}  // namespace tilefarm::memory

#endif  // TILEFARM_MEMORY_SCHEDULE_CHANGES_H_
