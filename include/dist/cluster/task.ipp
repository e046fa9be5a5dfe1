#pragma once

#include <dist/cluster/task.hpp>
#include <dist/core/text.hpp>

namespace dist {

DIST_INLINE std::string to_string(const Task& task) { return text(to_string(task.type), " ", task.index); }

}  // namespace dist
