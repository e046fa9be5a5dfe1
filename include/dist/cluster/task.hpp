#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <dist/core/text.hpp>

namespace dist {

/// What a process is for (spec M08). Chief and workers train together; parameter servers hold variables for them; an
/// evaluator runs beside them, alone.
enum class TaskType { chief, worker, parameter_server, evaluator };

inline constexpr std::array<TaskType, 4> task_types{TaskType::chief, TaskType::worker, TaskType::parameter_server,
                                                    TaskType::evaluator};

/// The name that TF_CONFIG gives it: "chief", "worker", "ps" or "evaluator".
[[nodiscard]] constexpr std::string_view to_string(TaskType type) noexcept {
  constexpr std::array<std::string_view, 4> names{"chief", "worker", "ps", "evaluator"};
  return names[static_cast<std::size_t>(type)];
}

/// The type of that name, if it is one. "master" is what older systems, and SageMaker, call the chief.
[[nodiscard]] constexpr std::optional<TaskType> task_type_named(std::string_view name) noexcept {
  if (name == "master") return TaskType::chief;
  for (const TaskType type : task_types)
    if (name == to_string(type)) return type;
  return std::nullopt;
}

/// One process of a cluster.
struct Task {
  TaskType type = TaskType::worker;
  std::size_t index = 0;  ///< among the tasks of its type

  friend constexpr auto operator<=>(const Task&, const Task&) = default;
  friend constexpr bool operator==(const Task&, const Task&) = default;  // nvcc 13 loses the one that the above implies
};

/// "worker 2"
[[nodiscard]] inline std::string to_string(const Task& task) { return concat(to_string(task.type), " ", task.index); }

}  // namespace dist
