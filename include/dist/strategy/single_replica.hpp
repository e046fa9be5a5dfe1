#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <dist/comm/self.hpp>
#include <dist/context/placement.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/strategy/interface.hpp>

namespace dist {

/// What the strategies with one replica share: replica functions are called directly, in the caller's thread.
template <class Derived, class DeviceType>
class SingleReplica : public StrategyInterface<Derived, DeviceType> {
 public:
  using Device = DeviceType;
  using Placement = OnEveryReplica;
  using Collectives = SelfCollectives;
  using Context = ReplicaContext<Derived>;

  [[nodiscard]] static constexpr std::size_t num_replicas_in_sync() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t num_local_replicas() noexcept { return 1; }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& replica_memory() const noexcept { return memory_; }

  /// Calls `fn(context, args...)` and returns what it returns, unwrapped (spec C02). Exceptions pass as they are.
  template <class Fn, class... Args>
  DIST_ALWAYS_INLINE decltype(auto) run(Fn&& fn, Args&&... args) {
    (require_value_per_replica(num_local_replicas(), args), ...);
    Context context{static_cast<Derived&>(*this), Collectives{}};
    return std::forward<Fn>(fn)(context, select_replica(0, args)...);
  }

 protected:
  SingleReplica() = default;
  ~SingleReplica() = default;

 private:
  std::shared_ptr<typename Device::Memory> memory_ = std::make_shared<typename Device::Memory>(1);
};

}  // namespace dist
