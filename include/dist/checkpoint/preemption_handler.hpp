#pragma once

#include <signal.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <dist/checkpoint/checkpoint_manager.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/device/signal_flag.hpp>

namespace dist {

/// Options of a PreemptionHandler.
struct PreemptionOptions {
  /// The signal that announces the end of a process.
  int signal = SIGTERM;
  /// The program's exit status after a preemption, which tells a launcher that it may be restarted (spec O06).
  int exit_code = ExitCode::preempted;
};

namespace detail {

/// The part of PreemptionHandler that does not depend on the strategy type.
class AnyPreemptionHandler {
 public:
  /// Restores the latest checkpoint: a collective call of the processes. Warns if mpirun would kill the processes
  /// before a save is done. Throws the errors of CheckpointManager::restore_latest, and InvalidArgument if another
  /// handler exists.
  explicit AnyPreemptionHandler(AnyCheckpointManager& manager, const PreemptionOptions& options = {})
      : manager_(manager), options_(options), flag_(options.signal), restored_(manager.restore_latest()) {
    if (manager.any_strategy().is_chief()) warn_of_short_grace();
  }

  /// The path of the restored checkpoint; none if the program starts anew.
  [[nodiscard]] const std::optional<std::string>& restored() const noexcept { return restored_; }
  [[nodiscard]] int exit_code() const noexcept { return options_.exit_code; }

  /// True, in all processes, if any process has received the signal. A collective call of a few bytes.
  [[nodiscard]] bool is_preempted() const { return manager_.any_strategy().any_process(SignalFlag::came()); }
  /// If any process has received the signal, saves a checkpoint and returns true once it is complete. Call it after
  /// each step, outside replica functions: a collective call of the processes. The parameter servers and workers of a
  /// ParameterServer then exit with the same `exit_code()`.
  [[nodiscard]] bool save_if_preempted() {
    if (!is_preempted()) return false;
    const std::string path = manager_.save();
    SignalFlag::obey(exit_code());
    if (manager_.any_strategy().is_chief()) log_line(concat("preempted: saved ", path));
    return true;
  }

 private:
  /// mpirun forwards SIGTERM, and kills remaining processes a second later.
  static void warn_of_short_grace() {
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr && std::getenv("OMPI_MCA_odls_base_sigkill_timeout") == nullptr)
      log_line(
          "mpirun kills processes one second after it signals them to exit, which may be too soon for a checkpoint: "
          "start it with --mca odls_base_sigkill_timeout and the longest duration of a save in seconds");
  }

  AnyCheckpointManager& manager_;
  PreemptionOptions options_;
  SignalFlag flag_;
  std::optional<std::string> restored_;
};

}  // namespace detail

/// Saves a checkpoint in all processes, after the same step, when a program is preempted, and resumes from it after a
/// restart (spec O03, O04):
///
///     dist::PreemptionHandler preemption{manager};  // restores the latest checkpoint
///     for (; step < steps; ++step) {
///       …
///       if (preemption.save_if_preempted()) return preemption.exit_code();
///     }
///
/// Any process may receive the signal, at any time. It then only sets a flag. Without this object, the library does not
/// handle signals. The manager must outlive it.
template <class S>
class PreemptionHandler : public detail::AnyPreemptionHandler {
 public:
  /// Restores the latest checkpoint, like the constructor of the base class, and starts to watch for the signal.
  explicit PreemptionHandler(CheckpointManager<S>& manager, const PreemptionOptions& options = {})
      : AnyPreemptionHandler(manager, options) {}
};

/// Deduces the strategy.
template <class S>
PreemptionHandler(CheckpointManager<S>&) -> PreemptionHandler<S>;
/// Deduces the strategy.
template <class S>
PreemptionHandler(CheckpointManager<S>&, const PreemptionOptions&) -> PreemptionHandler<S>;

}  // namespace dist
