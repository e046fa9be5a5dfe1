#pragma once

#include <dist/core/error.hpp>
#include <dist/data/auto_shard.hpp>

namespace dist::data::detail {

DIST_INLINE void require_files(std::size_t files, std::size_t workers) {
  if (files < workers)
    throw InvalidArgument("There are fewer files than workers", concat(files, " files for ", workers, " workers"),
                          "Split the data into more files, or use AutoShardPolicy::data or off");
}

DIST_INLINE void refuse_source(std::string_view type) {
  throw InvalidArgument(concat("AutoShardPolicy::file found no files in the source ", type),
                        "it has no members num_files() and shard_files(n, i)",
                        "Read from files, or use AutoShardPolicy::data or off");
}

DIST_INLINE void refuse_policy(AutoShardPolicy policy) {
  throw InvalidArgument("The auto-shard policy is not valid", concat("its number is ", static_cast<int>(policy)),
                        "Use AutoShardPolicy::off, automatic, file, data or hint");
}

}  // namespace dist::data::detail
