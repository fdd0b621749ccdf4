// The clock and the core of the thread that calls kernels, and what the system says of it.
#ifndef TILEFARM_RUNNER_HOST_H_
#define TILEFARM_RUNNER_HOST_H_

#include <memory>

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
  virtual void move() = 0;  // to the next core that the thread may use, if it stays on one
};

// The machine; the calling thread may use the cores that it could before when this goes.
class Machine final : public Host {
 public:
  Machine();
  ~Machine() override;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  void stay();  // on the core where the thread is, until it moves
  double seconds() override;
  Usage usage() override;
  void move() override;

 private:
  struct Cores;
  std::unique_ptr<Cores> cores_;  // null while the thread is free to go where the system wants it
};

}  // namespace tilefarm::runner

#endif  // TILEFARM_RUNNER_HOST_H_
