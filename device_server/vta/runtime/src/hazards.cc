#include "hazards.h"

#include <algorithm>

#include "describe.h"
#include "error.h"

namespace tilefarm {

HazardChecker::HazardChecker(const Config& config)
    : inp_{Module::kLoad, Module::kCompute, "INP", {}},
      wgt_{Module::kLoad, Module::kCompute, "WGT", {}},
      out_{Module::kCompute, Module::kStore, "OUT", {}} {
  inp_.elements.resize(config.inp_depth());
  wgt_.elements.resize(config.wgt_depth());
  out_.elements.resize(config.acc_depth());
}

// Tokens from before the launch order nothing within this run.
void HazardChecker::begin(const std::vector<Instruction>& instructions, const Tokens& tokens) {
  instructions_ = &instructions;
  for (Buffer* buffer : {&inp_, &wgt_, &out_}) {
    std::fill(buffer->elements.begin(), buffer->elements.end(), Element{});
  }
  for (auto& lane : lanes_) lane.clear();
  clocks_ = {};
  for (int q = 0; q < kTokenQueues; ++q) tokens_[q].assign(tokens[q], Clock{});
}

void HazardChecker::visit(size_t index, const std::vector<Uop>& uops) {
  const Instruction& f = (*instructions_)[index];
  const auto module = static_cast<size_t>(f.module());
  const TokenUse use = token_use(f);
  now_ = clocks_[module];
  for (int q = 0; q < kTokenQueues; ++q) {
    if (!(use.pops >> q & 1)) continue;
    for (int m = 0; m < kModules; ++m) now_[m] = std::max(now_[m], tokens_[q].front()[m]);
    tokens_[q].pop_front();
  }
  lanes_[module].push_back(index);
  now_[module] = position_ = static_cast<uint32_t>(lanes_[module].size());
  const uint64_t elements =
      (uint64_t{f.x_pad_0} + f.x_size + f.x_pad_1) * (uint64_t{f.y_pad_0} + f.y_size + f.y_pad_1);
  if (f.is_compute()) {
    visit_compute(f, uops);
  } else if (f.module() == Module::kLoad && !f.is_nop()) {
    Buffer& buffer = f.mem() == Memory::kInp ? inp_ : wgt_;
    for (uint64_t k = 0; k < elements; ++k) write(buffer, f.sram_base + k);
  } else if (f.op() == Opcode::kStore && !f.is_nop()) {
    for (uint64_t k = 0; k < elements; ++k) read(out_, f.sram_base + k);
  }
  clocks_[module] = now_;
  for (int q = 0; q < kTokenQueues; ++q) {
    if (use.pushes >> q & 1) tokens_[q].push_back(now_);
  }
}

// Once for every micro-op of every iteration: so the checks of `write` and `read` are repeated here
// on local copies, and those are called for their reasons only.
void HazardChecker::visit_compute(const Instruction& f, const std::vector<Uop>& uops) {
  const bool gemm = f.op() == Opcode::kGemm;
  if (gemm && f.reset) return;
  Element *const out = out_.elements.data(), *const inp = inp_.elements.data(),
                 *const wgt = wgt_.elements.data();
  const uint32_t stored = now_[static_cast<size_t>(Module::kStore)];
  const uint32_t loaded = now_[static_cast<size_t>(Module::kLoad)];
  const uint32_t position = position_;
  for (uint32_t o = 0; o < f.iter_out; ++o) {
    for (uint32_t i = 0; i < f.iter_in; ++i) {
      const uint32_t dst_base = o * f.dst_out + i * f.dst_in;
      const uint32_t src_base = o * f.src_out + i * f.src_in;
      const uint32_t wgt_base = o * f.wgt_out + i * f.wgt_in;
      for (uint32_t u = f.uop_begin; u < f.uop_end; ++u) {
        const uint32_t dst = uops[u].dst + dst_base;
        if (out[dst].read > stored) write(out_, dst);
        out[dst].written = position;
        if (!gemm) continue;
        const uint32_t src = uops[u].src + src_base, weight = uops[u].wgt + wgt_base;
        if (inp[src].written > loaded) read(inp_, src);
        inp[src].read = position;
        if (wgt[weight].written > loaded) read(wgt_, weight);
        wgt[weight].read = position;
      }
    }
  }
}

void HazardChecker::write(Buffer& buffer, uint64_t index) {
  Element& element = buffer.elements[index];
  if (element.read > now_[static_cast<size_t>(buffer.reader)]) {
    fail_unordered(buffer, index, "writes", buffer.reader, element.read);
  }
  element.written = position_;
}

void HazardChecker::read(Buffer& buffer, uint64_t index) {
  Element& element = buffer.elements[index];
  if (element.written > now_[static_cast<size_t>(buffer.writer)]) {
    fail_unordered(buffer, index, "reads", buffer.writer, element.written);
  }
  element.read = position_;
}

void HazardChecker::fail_unordered(const Buffer& buffer, uint64_t index, const char* verb,
                                   Module other, uint32_t position) const {
  const size_t before = lanes_[static_cast<size_t>(other)][position - 1];
  fail(TILEFARM_VTA_HAZARD,
       "%s %s element %llu, but no token orders it against instruction %zu (%s)", verb, buffer.name,
       static_cast<unsigned long long>(index), before, describe((*instructions_)[before]).c_str());
}

}  // namespace tilefarm
