#include "matrix_path.h"

#include <algorithm>

#include "../error.h"

namespace tilefarm {
namespace {

std::vector<const MatrixPath*> runnable_paths() {
  std::vector<const MatrixPath*> paths{
#if defined(__x86_64__)
      &kAvx512VnniPath, &kAvx2Path,
#elif defined(__aarch64__)
      &kNeonPath,
#endif
      &kPortablePath, &kScalarPath};
  const auto foreign = [](const MatrixPath* path) { return !path->has_machine(); };
  paths.erase(std::remove_if(paths.begin(), paths.end(), foreign), paths.end());
  return paths;
}

const MatrixPath& fastest(const TileShape& shape) {
  const auto& paths = matrix_paths();
  return **std::find_if(paths.begin(), paths.end(),
                        [&](const MatrixPath* path) { return path->has_shape(shape); });
}

}  // namespace

const std::vector<const MatrixPath*>& matrix_paths() {
  static const std::vector<const MatrixPath*> paths = runnable_paths();
  return paths;
}

const MatrixPath& matrix_path(const std::string& name, const TileShape& shape) {
  if (name.empty()) return fastest(shape);
  for (const MatrixPath* path : matrix_paths()) {
    if (name == path->name) return path->has_shape(shape) ? *path : kPortablePath;
  }
  fail(TILEFARM_VTA_BAD_ARGUMENT, "%s is no vector path of this machine", name.c_str());
}

}  // namespace tilefarm
