#pragma once

#include <dist/server/update.hpp>

namespace dist::server::detail {

DIST_INLINE std::unique_ptr<AnyUpdate> get_update(ArchiveReader& archive) {
  return FunctionTable<ReadUpdate>::find(archive.get<CodePlace>())(archive);
}

}  // namespace dist::server::detail
