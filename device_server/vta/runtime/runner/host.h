// The clock of the thread that calls kernels, and what the system says of it.
#ifndef TILEFARM_RUNNER_HOST_H_
#define TILEFARM_RUNNER_HOST_H_

namespace tilefarm::runner {

// Of the calling thread since it began.
struct Usage {
  double processor_seconds = 0;
  long preemptions = 0, major_faults = 0;
  int core = 0;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual double seconds() = 0;
  virtual Usage usage() = 0;
};

class Machine final : public Host {
 public:
  double seconds() override;
  Usage usage() override;
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_HOST_H_
