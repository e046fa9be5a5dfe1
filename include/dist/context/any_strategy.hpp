#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <dist/comm/communication_options.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/reduce_op.hpp>

namespace dist::detail {

/// A type-erased interface to the processes of a strategy.
class AnyStrategy {
 public:
  using Barrier = FunctionRef<void()>;
  /// The data of one process for `gather`.
  using Record = std::array<char, 192>;

  AnyStrategy() = default;
  AnyStrategy(const AnyStrategy&) = delete;
  AnyStrategy& operator=(const AnyStrategy&) = delete;

  [[nodiscard]] virtual std::size_t worker_rank() const = 0;
  [[nodiscard]] virtual std::size_t num_workers() const = 0;
  [[nodiscard]] virtual bool is_chief() const = 0;
  /// Calls `use` with the strategy's scope, for an AnyLeaf.
  virtual void in_scope(FunctionRef<void(const void* scope)> use) const = 0;
  /// Calls `call` like detail::run_collectively.
  virtual void run_collectively(FunctionRef<void()> call) const = 0;
  /// Calls `call` like detail::run_collectively, with a barrier that has the timeout of `options`.
  virtual void run_collectively(const CommunicationOptions& options, FunctionRef<void(Barrier)> call) const = 0;
  /// Returns the result of detail::any_process.
  [[nodiscard]] virtual bool any_process(bool holds) const = 0;
  /// Returns the result of detail::broadcast_from_chief.
  virtual std::uint64_t broadcast_from_chief(FunctionRef<std::uint64_t()> call) const = 0;
  // Only within a call of run_collectively:
  virtual void broadcast(std::span<std::uint64_t> values) const = 0;
  virtual void all_reduce_max(std::span<std::uint64_t> values) const = 0;
  virtual void barrier() const = 0;
  virtual void gather(std::string_view operation, const Record& mine, std::span<Record> all) const = 0;

 protected:
  ~AnyStrategy() = default;
};

/// Implements AnyStrategy by reference.
template <class S>
class AnyStrategyOf final : public AnyStrategy {
 public:
  explicit AnyStrategyOf(S& strategy) noexcept : strategy_(strategy) {}

  [[nodiscard]] std::size_t worker_rank() const override { return strategy_.worker_rank(); }
  [[nodiscard]] std::size_t num_workers() const override { return strategy_.num_workers(); }
  [[nodiscard]] bool is_chief() const override { return strategy_.is_chief(); }
  void in_scope(FunctionRef<void(const void* scope)> use) const override {
    const auto scope = strategy_.scope();
    use(&scope);
  }
  void run_collectively(FunctionRef<void()> call) const override { detail::run_collectively(strategy_, call); }
  void run_collectively(const CommunicationOptions& options, FunctionRef<void(Barrier)> call) const override {
    detail::run_collectively(strategy_, options, [&](const auto& workers) {
      const auto barrier = [&] { workers.communicator().barrier(); };
      call(barrier);
    });
  }
  [[nodiscard]] bool any_process(bool holds) const override { return detail::any_process(strategy_, holds); }
  std::uint64_t broadcast_from_chief(FunctionRef<std::uint64_t()> call) const override {
    return detail::broadcast_from_chief(strategy_, call);
  }
  void broadcast(std::span<std::uint64_t> values) const override { strategy_.workers().broadcast(0, values); }
  void all_reduce_max(std::span<std::uint64_t> values) const override { strategy_.workers().all_reduce(max, values); }
  void barrier() const override { strategy_.workers().communicator().barrier(); }
  void gather(std::string_view operation, const Record& mine, std::span<Record> all) const override {
    strategy_.workers().all_gather_values(operation, mine, all);
  }

 private:
  S& strategy_;
};

}  // namespace dist::detail
