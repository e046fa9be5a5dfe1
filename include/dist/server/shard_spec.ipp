#pragma once

#include <dist/core/text.hpp>
#include <dist/server/shard_spec.hpp>

namespace dist::server {

DIST_INLINE std::string to_string(const ShardSpec& spec) {
  return concat("Shard ", quoted(spec.name), " (number ", spec.id, ")");
}

}  // namespace dist::server
