// The shared read path, cycle by cycle: five clients, the VME's arbiter, and the DRAM behind it.
//
// Model of shell/VME.scala and dpi/VTAMemDPI.v of apache/tvm-vta. Everything a caller reads holds
// at the start of the current cycle; what it requests is seen from the next one on.
#ifndef TILEFARM_CYCLE_MEMORY_PORT_H_
#define TILEFARM_CYCLE_MEMORY_PORT_H_

#include <array>
#include <cstdint>
#include <deque>

#include "../config.h"

namespace tilefarm {

// In the order of priority.
enum Client { kFetchClient, kUopClient, kInpClient, kWgtClient, kAccClient, kClients };

constexpr uint64_t kForever = UINT64_MAX;

class MemoryPort {
 public:
  explicit MemoryPort(const Config& config)
      : delay_(config.dram_delay_cycles), free_(config.outstanding_bursts) {}

  bool slot_empty(Client client) const { return slots_[client] == 0; }
  bool arrives(Client client) const { return client_valid_ && client_ == client; }
  void request(Client client, uint32_t beats) { requested_[client] = beats; }
  void step();

  // For how many cycles from now, if nobody requests, every cycle looks like this one to the
  // clients.
  uint64_t steady_cycles() const;
  void jump(uint64_t cycles);  // at most steady_cycles()

 private:
  struct Burst {
    uint32_t beats;
    Client client;
  };

  void step_dram();
  void step_arbiter(bool last_beat);
  bool any_slot() const;
  bool streaming() const;

  uint32_t delay_;
  // VME: one waiting command per client, bursts that may still be issued.
  std::array<uint32_t, kClients> slots_{};
  std::array<uint32_t, kClients> requested_{};
  uint32_t free_;
  // DRAM: requests in order; a countdown from idle; the burst in progress.
  std::deque<Burst> queue_;
  uint32_t waited_ = 0;
  bool busy_ = false;
  uint32_t remaining_ = 0;  // beats after the one in the data register
  uint32_t burst_left_ = 0;
  Client burst_client_ = kFetchClient;
  // The beat in the data register, and the one before it, which its client sees.
  bool data_valid_ = false, client_valid_ = false;
  Client data_client_ = kFetchClient, client_ = kFetchClient;
};

}  // namespace tilefarm

#endif  // TILEFARM_CYCLE_MEMORY_PORT_H_
