// The exported functions of tilefarm_vta.h.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "dump.h"
#include "matrix/matrix_path.h"
#include "session.h"
#include "tilefarm_vta.h"

#ifndef TILEFARM_VERSION
#define TILEFARM_VERSION "unversioned"
#endif

using tilefarm::Config;
using tilefarm::Session;

namespace {

void copy_text(const std::string& text, char* to, size_t nbytes) {
  if (to == nullptr || nbytes == 0) return;
  const size_t count = std::min(text.size(), nbytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
}

std::vector<tilefarm::Word> words_of(const uint64_t* instructions, size_t count) {
  std::vector<tilefarm::Word> words(count);
  for (size_t k = 0; k < count; ++k) words[k] = {instructions[2 * k], instructions[2 * k + 1]};
  return words;
}

const tilefarm::RecordedStream& recorded_stream(size_t stream) {
  const auto& streams = Session::get().runtime().recorded_streams();
  if (stream >= streams.size()) {
    tilefarm::fail(TILEFARM_VTA_BAD_ARGUMENT, "stream %zu of %zu recorded ones", stream,
                   streams.size());
  }
  return streams[stream];
}

}  // namespace

int tilefarm_vta_configure(const tilefarm_vta_config* config) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] {
    if (config == nullptr) tilefarm::fail(TILEFARM_VTA_BAD_ARGUMENT, "no configuration");
    session.configure(tilefarm::config_of(*config));
  });
  return session.errors().status();
}

void tilefarm_vta_reset(void) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] { session.runtime().reset(); });
}

int tilefarm_vta_last_error(char* why, size_t nbytes) {
  const tilefarm::ErrorState& errors = Session::get().errors();
  copy_text(errors.why(), why, nbytes);
  return errors.status();
}

void tilefarm_vta_clear_error(void) { Session::get().errors().clear(); }

int tilefarm_vta_check_idle(void) {
  Session& session = Session::get();
  session.unless_failed([&] { session.runtime().check_idle(); });
  return session.errors().status();
}

void tilefarm_vta_clear_counters(void) {
  Session& session = Session::get();
  session.guarded([&] { session.runtime().accelerator().clear_counters(); });
}

void tilefarm_vta_read_counters(tilefarm_vta_counters* out) {
  *out = {};
  Session& session = Session::get();
  session.guarded([&] { *out = session.runtime().accelerator().counters(); });
}

void tilefarm_vta_record_timeline(int on) {
  Session& session = Session::get();
  session.guarded([&] { session.runtime().accelerator().record_timeline(on != 0); });
}

size_t tilefarm_vta_read_timeline(tilefarm_vta_event* out, size_t max_events) {
  Session& session = Session::get();
  size_t count = 0;
  session.guarded([&] {
    const auto& timeline = session.timeline();
    count = timeline.size();
    for (size_t k = 0; k < std::min(count, max_events); ++k) {
      const tilefarm::TimelineEntry& entry = timeline[k];
      out[k].begin_cycle = entry.begin;
      out[k].end_cycle = entry.end;
      out[k].module = static_cast<uint32_t>(entry.module);
      out[k].instruction = entry.instruction;
      copy_text(entry.name, out[k].name, sizeof out[k].name);
    }
  });
  return count;
}

int tilefarm_vta_run_stream(const uint64_t* instructions, size_t count, uint8_t* dram,
                            size_t dram_nbytes, tilefarm_vta_counters* out) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded(
      [&] { session.runtime().run_image(words_of(instructions, count), dram, dram_nbytes); });
  if (out != nullptr) tilefarm_vta_read_counters(out);
  return session.errors().status();
}

int tilefarm_vta_disassemble(const uint64_t* instruction, uint64_t* again, char* text,
                             size_t nbytes) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] {
    const tilefarm::Encoding& encoding = session.runtime().accelerator().encoding();
    const tilefarm::Instruction fields = encoding.decode({instruction[0], instruction[1]});
    const tilefarm::Word word = encoding.encode(fields);
    again[0] = word.lo;
    again[1] = word.hi;
    copy_text(tilefarm::line(fields), text, nbytes);
  });
  return session.errors().status();
}

int tilefarm_vta_decode_uop(uint32_t uop, uint32_t* again, uint32_t* indices) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] {
    const tilefarm::Encoding& encoding = session.runtime().accelerator().encoding();
    const tilefarm::Uop decoded = encoding.decode_uop(uop);
    *again = encoding.encode_uop(decoded);
    indices[0] = decoded.dst;
    indices[1] = decoded.src;
    indices[2] = decoded.wgt;
  });
  return session.errors().status();
}

size_t tilefarm_vta_read_findings(tilefarm_vta_finding* out, size_t max_findings) {
  Session& session = Session::get();
  size_t count = 0;
  session.guarded([&] {
    const auto& findings = session.runtime().accelerator().findings();
    count = findings.size();
    for (size_t k = 0; k < std::min(count, max_findings); ++k) {
      out[k].severity = static_cast<uint32_t>(findings[k].severity);
      out[k].instruction = static_cast<uint32_t>(findings[k].instruction);
      copy_text(findings[k].rule, out[k].rule, sizeof out[k].rule);
      copy_text(findings[k].text, out[k].text, sizeof out[k].text);
    }
  });
  return count;
}

int tilefarm_vta_timing_basis(void) { return Session::get().config().timing_basis(); }

void tilefarm_vta_limit_uops(uint64_t limit) {
  Session& session = Session::get();
  session.guarded([&] { session.limit_uops(limit); });
}

const char* tilefarm_vta_vector_paths(void) {
  static const std::string names = [] {
    std::string text;
    for (const auto* path : tilefarm::matrix_paths()) {
      text += (text.empty() ? "" : " ") + std::string(path->name);
    }
    return text;
  }();
  return names.c_str();
}

int tilefarm_vta_use_vector_path(const char* name) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] { session.use_vector_path(name == nullptr ? "" : name); });
  return session.errors().status();
}

void tilefarm_vta_record_streams(int on) {
  Session& session = Session::get();
  session.guarded([&] { session.runtime().record_streams(on != 0); });
}

size_t tilefarm_vta_recorded_streams(void) {
  Session& session = Session::get();
  size_t count = 0;
  session.guarded([&] { count = session.runtime().recorded_streams().size(); });
  return count;
}

int tilefarm_vta_describe_recorded(size_t stream, tilefarm_vta_recorded* out) {
  Session& session = Session::get();
  session.guarded([&] {
    const tilefarm::RecordedStream& recorded = recorded_stream(stream);
    *out = {recorded.words().size(), static_cast<size_t>(recorded.image_nbytes()),
            recorded.counters()};
  });
  return session.errors().status();
}

int tilefarm_vta_read_recorded(size_t stream, uint64_t* instructions, uint8_t* before,
                               uint8_t* after) {
  Session& session = Session::get();
  session.guarded([&] {
    const tilefarm::RecordedStream& recorded = recorded_stream(stream);
    for (const tilefarm::Word& word : recorded.words()) {
      *instructions++ = word.lo;
      *instructions++ = word.hi;
    }
    recorded.read_before(before);
    recorded.read_after(after);
  });
  return session.errors().status();
}

void tilefarm_vta_begin_call(int record_timeline) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] { session.runtime().begin_call(record_timeline != 0); });
}

int tilefarm_vta_share_memory(int file, uint64_t nbytes) {
  Session& session = Session::get();
  session.guarded([&] { session.begin_anew({file, nbytes}); });
  return session.errors().status();
}

int tilefarm_vta_connect(int socket) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded(
      [&] { session.runtime().connect(std::make_unique<tilefarm::RemoteAccelerator>(socket)); });
  return session.errors().status();
}

int tilefarm_vta_serve(int socket) {
  Session& session = Session::get();
  bool goes_on = false;
  session.guarded([&] { goes_on = session.server().receive(socket); });
  if (goes_on) session.unless_failed([&] { session.server().obey(); });
  return goes_on && session.server().answer(socket, session.errors());
}

size_t tilefarm_vta_read_calls(tilefarm_vta_calls* out, size_t max_entries) {
  Session& session = Session::get();
  size_t count = 0;
  session.guarded([&] {
    const auto& calls = session.server().calls();
    count = calls.size();
    std::copy_n(calls.begin(), std::min(count, max_entries), out);
  });
  return count;
}

void tilefarm_vta_forget_calls(void) {
  Session& session = Session::get();
  session.errors().clear();
  session.guarded([&] { session.server().forget(); });
}

const char* tilefarm_vta_build_id(void) {
  static const std::string id = std::string("tilefarm-vta " TILEFARM_VERSION " gcc " __VERSION__) +
                                " " + tilefarm::matrix_path("", {1, 16}).name;
  return id.c_str();
}
