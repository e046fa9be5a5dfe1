/// Which run the calling thread is in, where replicas are threads.
#pragma once

#include <string_view>

#include <dist/core/error.hpp>

namespace dist::detail {

/// The run that a thread is in the middle of.
struct RunHere {
  const void* strategy = nullptr;  ///< that of the run; null outside every run
  bool is_merging = false;         ///< replica 0 merges a call, outside replica functions

  [[nodiscard]] bool is_replica_function() const noexcept { return strategy != nullptr && !is_merging; }
};

/// The run of the calling thread. Strategies whose one replica is the calling thread leave no trace in it.
inline constinit thread_local RunHere run_here{};

/// The thread is in `run` while this lives, and then where it was before.
class RunGuard {
 public:
  explicit RunGuard(RunHere run) noexcept : before_(run_here) { run_here = run; }
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;
  ~RunGuard() { run_here = before_; }

 private:
  RunHere before_;
};

[[noreturn]] inline void refuse_inside_another_strategy(std::string_view method) {
  throw WrongStrategy(concat("strategy.", method, " was called inside a replica function of another strategy"),
                      "strategies do not nest: each replica would do it for itself",
                      "Call it outside run, or use the strategy whose context the replica function got");
}

/// Throws WrongStrategy in a replica function of another strategy than `strategy` (spec B08), unless that function made
/// it: a strategy of one replica's own disturbs nobody. `made_in` is the strategy whose replica function did.
inline void require_outside_other_strategies(const void* strategy, const void* made_in, std::string_view method) {
  if (run_here.is_replica_function() && run_here.strategy != strategy && run_here.strategy != made_in)
    refuse_inside_another_strategy(method);
}

}  // namespace dist::detail
