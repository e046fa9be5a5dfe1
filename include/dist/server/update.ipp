#pragma once

#include <dist/server/update.hpp>

namespace dist::server::detail {

DIST_INLINE std::unique_ptr<ElementUpdateBase> get_update(ArchiveReader& archive) {
  return FunctionTable<ReadUpdate>::find(archive.get<FunctionId>())(archive);
}

}  // namespace dist::server::detail
