#include "functional.h"

#include <algorithm>
#include <cstring>

#include "describe.h"
#include "error.h"

namespace tilefarm {
namespace {

int32_t wrapped(uint32_t bits) { return static_cast<int32_t>(bits); }

// Arithmetic right shift; a negative amount shifts left. 32 and more shift everything out.
int32_t shifted(int32_t value, int32_t amount) {
  if (amount >= 0) return value >> std::min(amount, 31);
  return amount <= -32 ? 0 : wrapped(static_cast<uint32_t>(value) << -amount);
}

struct Min {
  int32_t operator()(int32_t a, int32_t b) const { return std::min(a, b); }
};
struct Max {
  int32_t operator()(int32_t a, int32_t b) const { return std::max(a, b); }
};
struct Add {
  int32_t operator()(int32_t a, int32_t b) const {
    return wrapped(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
};
struct Shr {
  int32_t operator()(int32_t a, int32_t b) const { return shifted(a, b); }
};
struct Mul {
  int32_t operator()(int32_t a, int32_t b) const {
    return wrapped(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
};

template <typename Visit>
void with_alu_operation(AluOp op, const Visit& visit) {
  switch (op) {
    case AluOp::kMin: return visit(Min{});
    case AluOp::kMax: return visit(Max{});
    case AluOp::kAdd: return visit(Add{});
    case AluOp::kShr: return visit(Shr{});
    case AluOp::kMul: return visit(Mul{});
  }
  fail(TILEFARM_VTA_BAD_INSTRUCTION, "unknown ALU opcode %u", static_cast<uint32_t>(op));
}

uint64_t padded_width(const Instruction& f) { return uint64_t{f.x_pad_0} + f.x_size + f.x_pad_1; }
uint64_t padded_height(const Instruction& f) { return uint64_t{f.y_pad_0} + f.y_size + f.y_pad_1; }

}  // namespace

uint32_t element_nbytes(const Config& config, Memory memory) {
  if (const uint32_t nbytes = config.element_nbytes(memory)) return nbytes;
  fail(TILEFARM_VTA_BAD_INSTRUCTION, "unknown memory type %u", static_cast<uint32_t>(memory));
}

Functional::Functional(const Config& config, const Encoding& encoding, const std::string& path)
    : config_(config),
      encoding_(encoding),
      shape_{config.batch(), config.block()},
      path_(matrix_path(path, shape_)),
      inp_stride_(path_.inp_stride(shape_)),
      wgt_stride_(path_.wgt_stride(shape_)),
      uop_(config.uop_depth()),
      inp_(memory(config.inp_depth() * inp_stride_)),
      wgt_(memory(config.wgt_depth() * wgt_stride_)),
      acc_(memory(size_t{config.acc_depth()} * config.acc_nbytes())),
      uop_touched_(config.uop_depth()),
      inp_touched_(config.inp_depth()),
      wgt_touched_(config.wgt_depth()),
      acc_touched_(config.acc_depth()) {
  reset();
}

std::vector<Functional::CacheLine> Functional::memory(size_t nbytes) {
  return std::vector<CacheLine>((nbytes + sizeof(CacheLine) - 1) / sizeof(CacheLine));
}

void Functional::reset() {
  for (Memory memory : {Memory::kUop, Memory::kInp, Memory::kWgt, Memory::kAcc}) {
    fill(memory, 0, touched(memory));
    touched(memory) = 0;
  }
}

uint32_t& Functional::touched(Memory memory) {
  switch (memory) {
    case Memory::kUop: return uop_touched_;
    case Memory::kInp: return inp_touched_;
    case Memory::kWgt: return wgt_touched_;
    default: return acc_touched_;
  }
}

void Functional::touch(Memory memory, uint64_t end) {
  touched(memory) = std::max(touched(memory), static_cast<uint32_t>(end));
}

void Functional::execute(const Instruction& f, Dram& dram, tilefarm_vta_counters& counters) {
  if (f.is_nop()) return;
  switch (f.op()) {
    case Opcode::kLoad: return load(f, dram, counters);
    case Opcode::kStore: return store(f, dram, counters);
    case Opcode::kGemm:
      touch(Memory::kAcc, check_indices(f));
      counters.gemm_uops += f.reset ? 0 : f.executed_uops();
      return gemm(f);
    case Opcode::kAlu:
      touch(Memory::kAcc, check_indices(f));
      counters.alu_uops += f.executed_uops();
      return alu(f);
    case Opcode::kFinish: return;
  }
}

void Functional::check_transfer(const Instruction& f, uint32_t depth) const {
  const uint64_t end = f.sram_base + padded_width(f) * padded_height(f);
  if (end > depth) {
    fail(TILEFARM_VTA_SRAM_RANGE, "%s elements %u..%llu exceed the buffer's %u",
         upper(memory_name(f.mem())).c_str(), f.sram_base, static_cast<unsigned long long>(end - 1),
         depth);
  }
}

// Host pointer to the first row; all rows up to the end of the last lie in one buffer.
const uint8_t* Functional::source_rows(const Instruction& f, const Dram& dram,
                                       uint32_t nbytes) const {
  const uint64_t address = uint64_t{f.dram_base} * nbytes;
  const uint64_t extent = (uint64_t{f.y_size - 1} * f.x_stride + f.x_size) * nbytes;
  const uint8_t* host = dram.at(address, extent);
  if (host == nullptr) {
    fail(TILEFARM_VTA_DRAM_RANGE, "%s bytes 0x%llx..0x%llx do not lie in one buffer",
         upper(memory_name(f.mem())).c_str(), static_cast<unsigned long long>(address),
         static_cast<unsigned long long>(address + extent - 1));
  }
  return host;
}

void Functional::load(const Instruction& f, Dram& dram, tilefarm_vta_counters& counters) {
  const uint32_t nbytes = element_nbytes(config_, f.mem());
  const uint64_t moved = uint64_t{f.x_size} * f.y_size;
  switch (f.mem()) {
    case Memory::kUop:
      check_transfer(f, config_.uop_depth());
      counters.uop_load_nbytes += moved * nbytes;
      break;
    case Memory::kWgt:
      check_transfer(f, config_.wgt_depth());
      counters.wgt_load_nbytes += moved * nbytes;
      break;
    case Memory::kInp:
      check_transfer(f, config_.inp_depth());
      counters.inp_load_nbytes += moved * nbytes;
      break;
    case Memory::kAcc:
    case Memory::kAcc8:
      check_transfer(f, config_.acc_depth());
      counters.acc_load_nbytes += moved * nbytes;
      break;
    case Memory::kOut: fail(TILEFARM_VTA_BAD_INSTRUCTION, "LOAD into OUT");
  }
  const uint8_t* from = source_rows(f, dram, nbytes);
  touch(f.mem(), f.sram_base + padded_width(f) * padded_height(f));
  const auto width = static_cast<uint32_t>(padded_width(f));
  uint32_t index = f.sram_base;
  fill(f.mem(), index, f.y_pad_0 * width);
  index += f.y_pad_0 * width;
  for (uint32_t y = 0; y < f.y_size; ++y, index += width) {
    fill(f.mem(), index, f.x_pad_0);
    take_row(f.mem(), index + f.x_pad_0, f.x_size, from + uint64_t{y} * f.x_stride * nbytes);
    fill(f.mem(), index + f.x_pad_0 + f.x_size, f.x_pad_1);
  }
  fill(f.mem(), index, f.y_pad_1 * width);
}

void Functional::fill(Memory memory, uint32_t index, uint32_t count) {
  const auto set = [&](std::vector<CacheLine>& buffer, size_t stride, int byte) {
    std::memset(buffer[0].bytes + index * stride, byte, count * stride);
  };
  if (count == 0) return;
  switch (memory) {
    case Memory::kUop: std::fill_n(&uop_[index], count, Uop{}); return;
    case Memory::kInp: return set(inp_, inp_stride_, 0);
    case Memory::kWgt: return set(wgt_, wgt_stride_, path_.wgt_zero_byte);
    default: return set(acc_, config_.acc_nbytes(), 0);
  }
}

void Functional::take_row(Memory memory, uint32_t index, uint32_t count, const uint8_t* from) {
  const auto* bytes = reinterpret_cast<const int8_t*>(from);
  const size_t tile = shape_.acc_elements();
  switch (memory) {
    case Memory::kUop:
      for (uint32_t k = 0; k < count; ++k) {
        uint32_t word;
        std::memcpy(&word, from + size_t{k} * kUopNbytes, sizeof word);
        uop_[index + k] = encoding_.decode_uop(word);
      }
      return;
    case Memory::kInp:
      for (uint32_t k = 0; k < count; ++k) {
        path_.pack_inp(shape_, bytes + k * tile, inp_[0].bytes + (index + k) * inp_stride_);
      }
      return;
    case Memory::kWgt:
      for (uint32_t k = 0; k < count; ++k) {
        path_.pack_wgt(shape_, bytes + size_t{k} * config_.wgt_nbytes(),
                       wgt_[0].bytes + (index + k) * wgt_stride_);
      }
      return;
    case Memory::kAcc8: std::copy(bytes, bytes + count * tile, acc_tile(index)); return;
    default: std::memcpy(acc_tile(index), from, count * tile * sizeof(int32_t));
  }
}

void Functional::store(const Instruction& f, Dram& dram, tilefarm_vta_counters& counters) {
  if (f.mem() != Memory::kOut) {
    fail(TILEFARM_VTA_BAD_INSTRUCTION, "STORE from %s, only OUT can be stored",
         upper(memory_name(f.mem())).c_str());
  }
  if (f.y_pad_0 || f.y_pad_1 || f.x_pad_0 || f.x_pad_1) {
    fail(TILEFARM_VTA_BAD_INSTRUCTION, "STORE with padding");
  }
  check_transfer(f, config_.acc_depth());
  const uint32_t nbytes = config_.out_nbytes();
  auto* to = const_cast<uint8_t*>(source_rows(f, dram, nbytes));
  const int32_t* from = acc_tile(f.sram_base);
  for (uint32_t y = 0; y < f.y_size; ++y) {
    uint8_t* row = to + uint64_t{y} * f.x_stride * nbytes;
    const uint32_t count = f.x_size * nbytes;
    for (uint32_t k = 0; k < count; ++k) row[k] = static_cast<uint8_t>(from[k]);
    from += count;
  }
  counters.out_store_nbytes += uint64_t{f.x_size} * f.y_size * nbytes;
}

// Indices only grow, so the largest is that of the last iteration with the largest micro-op.
uint64_t Functional::check_one_index(const Instruction& f, const char* name, uint32_t depth,
                                     uint32_t largest, uint32_t out_factor,
                                     uint32_t in_factor) const {
  const uint64_t index =
      largest + uint64_t{f.iter_out - 1} * out_factor + uint64_t{f.iter_in - 1} * in_factor;
  if (index >= depth) {
    fail(TILEFARM_VTA_SRAM_RANGE, "%s index %llu exceeds the buffer's %u elements", name,
         static_cast<unsigned long long>(index), depth);
  }
  return index;
}

uint64_t Functional::check_indices(const Instruction& f) const {
  if (f.uop_begin >= f.uop_end || f.iter_out == 0 || f.iter_in == 0) {
    fail(TILEFARM_VTA_BAD_INSTRUCTION, "zero trip count (%u..%u, %u x %u): hardware runs 2^14",
         f.uop_begin, f.uop_end, f.iter_out, f.iter_in);
  }
  if (f.uop_end > config_.uop_depth()) {
    fail(TILEFARM_VTA_SRAM_RANGE, "micro-op %u exceeds the buffer's %u", f.uop_end - 1,
         config_.uop_depth());
  }
  Indices largest{0, 0, 0};
  for (uint32_t u = f.uop_begin; u < f.uop_end; ++u) {
    largest.dst = std::max(largest.dst, uop_[u].dst);
    largest.src = std::max(largest.src, uop_[u].src);
    largest.wgt = std::max(largest.wgt, uop_[u].wgt);
  }
  const uint64_t last =
      check_one_index(f, "ACC", config_.acc_depth(), largest.dst, f.dst_out, f.dst_in);
  if (f.op() == Opcode::kGemm && !f.reset) {
    check_one_index(f, "INP", config_.inp_depth(), largest.src, f.src_out, f.src_in);
    check_one_index(f, "WGT", config_.wgt_depth(), largest.wgt, f.wgt_out, f.wgt_in);
  } else if (f.op() == Opcode::kAlu && !f.use_imm) {
    check_one_index(f, "ACC", config_.acc_depth(), largest.src, f.src_out, f.src_in);
  }
  return last + 1;
}

template <typename Body>
void Functional::for_each(const Instruction& f, const Body& body) const {
  const Uop* begin = &uop_[f.uop_begin];
  const Uop* end = begin + f.uops();
  for (uint32_t o = 0; o < f.iter_out; ++o) {
    for (uint32_t i = 0; i < f.iter_in; ++i) {
      const Indices base{o * f.dst_out + i * f.dst_in, o * f.src_out + i * f.src_in,
                         o * f.wgt_out + i * f.wgt_in};
      for (const Uop* u = begin; u != end; ++u) {
        body(Indices{base.dst + u->dst, base.src + u->src, base.wgt + u->wgt});
      }
    }
  }
}

void Functional::gemm(const Instruction& f) {
  if (f.reset) {
    return for_each(
        f, [&](const Indices& at) { std::memset(acc_tile(at.dst), 0, config_.acc_nbytes()); });
  }
  path_.run(shape_, f, {uop_.data(), inp_[0].bytes, wgt_[0].bytes, acc_tile(0)});
}

void Functional::alu(const Instruction& f) {
  const size_t tile = shape_.acc_elements();
  with_alu_operation(static_cast<AluOp>(f.alu_opcode), [&](auto operation) {
    if (f.use_imm) {
      return for_each(f, [&](const Indices& at) {
        int32_t* dst = acc_tile(at.dst);
        for (size_t k = 0; k < tile; ++k) dst[k] = operation(dst[k], f.imm);
      });
    }
    for_each(f, [&](const Indices& at) {
      int32_t* dst = acc_tile(at.dst);
      const int32_t* src = acc_tile(at.src);
      for (size_t k = 0; k < tile; ++k) dst[k] = operation(dst[k], src[k]);
    });
  });
}

}  // namespace tilefarm
