#include "artifact.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "failure.h"

namespace tilefarm::runner {
namespace {

struct Search {
  ElfW(Addr) base;
  AddressRange found;
};

int measure(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_addr != search->base) return 0;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const auto& header = info->dlpi_phdr[k];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
    search->found.begin = info->dlpi_addr;
    search->found.end = std::max(search->found.end, end);
  }
  return 1;
}

}  // namespace

Artifact::Artifact(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const std::string why = dlerror(), prefix = path + ": ";
  fail(FailureKind::kLoad, why.rfind(prefix, 0) == 0 ? why.substr(prefix.size()) : why);
}

Entry Artifact::entry(const std::string& symbol) const {
  void* address = dlsym(handle_, symbol.c_str());
  if (address == nullptr) fail(FailureKind::kLoad, "the artifact has no entry " + symbol);
  return reinterpret_cast<Entry>(address);
}

void Artifact::give(Share share) const {
  void* address = share == nullptr ? nullptr : dlsym(handle_, "tilefarm_share_work");
  if (address != nullptr) reinterpret_cast<void (*)(Share)>(address)(share);
}

AddressRange Artifact::addresses() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  Search search{map->l_addr, {}};
  dl_iterate_phdr(measure, &search);
  return search.found;
}

}  // namespace tilefarm::runner
