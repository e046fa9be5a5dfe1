#pragma once

#include <signal.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/device/signal_flag.hpp>

namespace dist {

struct PreemptionOptions {
  /// What tells a process that it is to end soon.
  int signal = SIGTERM;
  /// What the program is to return then, by which who started it knows that it may be started again (spec O06).
  int exit_code = ExitCode::preempted;
};

/// Ends a program that is told to end soon with one checkpoint, which all processes save after the same step, and goes on
/// from there when it is started again (spec O03, O04):
///
///     dist::PreemptionHandler preemption{manager};  // restores the latest checkpoint
///     for (; step < steps; ++step) {
///       …
///       if (preemption.save_if_preempted()) return preemption.exit_code();
///     }
///
/// The signal may come to any process, at any time. While the object lives the signal does nothing but that; without such
/// an object the library handles no signal. Refers to the manager.
template <class S>
class PreemptionHandler {
 public:
  /// Restores the latest checkpoint: a collective call of the processes. Says where mpirun would kill the processes too soon
  /// for a save. Throws as CheckpointManager::restore_latest does, and InvalidArgument where there is another one.
  explicit PreemptionHandler(CheckpointManager<S>& manager, const PreemptionOptions& options = {})
      : manager_(manager), options_(options), flag_(options.signal), restored_(manager.restore_latest()) {
    if (manager.strategy().is_chief()) warn_of_short_grace();
  }

  /// The checkpoint from which the program goes on; none where it begins.
  [[nodiscard]] const std::optional<std::string>& restored() const noexcept { return restored_; }
  [[nodiscard]] int exit_code() const noexcept { return options_.exit_code; }

  /// Whether some process was told to end: the same in all of them. A collective call, of a few bytes.
  [[nodiscard]] bool is_preempted() const {
    return detail::any_process(manager_.strategy(), detail::SignalFlag::came());
  }
  /// If some process was told to end, saves a checkpoint, and returns true when it is complete. Call it after each step,
  /// outside replica functions: a collective call of the processes. The parameter servers and workers of a ParameterServer
  /// then end with the same `exit_code()`.
  [[nodiscard]] bool save_if_preempted() {
    if (!is_preempted()) return false;
    const std::string path = manager_.save();
    detail::SignalFlag::obey(exit_code());
    if (manager_.strategy().is_chief()) log_line(concat("told to end: saved ", path));
    return true;
  }

 private:
  /// mpirun passes SIGTERM on, and kills a second later what has not ended.
  static void warn_of_short_grace() {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr && std::getenv("OMPI_MCA_odls_base_sigkill_timeout") == nullptr)
      log_line(
          "mpirun kills processes one second after it tells them to end, which may be too soon for a checkpoint: start "
          "it with --mca odls_base_sigkill_timeout and the seconds that a save may take");
  }

  CheckpointManager<S>& manager_;
  PreemptionOptions options_;
  detail::SignalFlag flag_;
  std::optional<std::string> restored_;
};

template <class S>
PreemptionHandler(CheckpointManager<S>&) -> PreemptionHandler<S>;
template <class S>
PreemptionHandler(CheckpointManager<S>&, const PreemptionOptions&) -> PreemptionHandler<S>;

}  // namespace dist
