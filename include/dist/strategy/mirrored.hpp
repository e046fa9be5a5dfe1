#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/variable/store.hpp>

namespace dist {

namespace detail {

/// Checks the policy of a Mirrored, with one error message each; `Checked` is then valid.
template <class Ops, class Device>
struct MirroredPolicy {
  static constexpr bool is_named = !std::same_as<Ops, NoOps>;
  static_assert(is_named,
                "Mirrored needs a reduction policy: dist::Mirrored<dist::ThreadAllReduce>, or with RingAllReduce, "
                "HierarchicalCopyAllReduce, ReductionToOneDevice or AutoAllReduce");
  static constexpr bool joins_threads = fits<Ops, ThreadCommunicator>;
  static_assert(joins_threads,
                "this policy works between processes, and the replicas of Mirrored are threads: use "
                "ThreadAllReduce, RingAllReduce, HierarchicalCopyAllReduce, ReductionToOneDevice or "
                "AutoAllReduce, or MultiWorker with this policy");

  /// The policy on these devices, if another one replaces it.
  using OnThese = typename OpsOn<Ops, Device>::Type;
  static constexpr bool is_included = OpsOn<Ops, Device>::require();

  static constexpr bool is_complete = [] {
    if constexpr (is_named && joins_threads && is_included) {
      constexpr bool is_policy = PolicyFor<OnThese, ThreadCommunicator>;
      static_assert(is_policy,
                    "Mirrored<Ops> needs cross-device ops that work between threads, such as ThreadAllReduce or "
                    "ReductionToOneDevice: an empty struct with a name and a nested template On<Communicator>");
      if constexpr (is_policy) {
        using Collectives = typename OnThese::template On<ThreadCommunicator>;
        constexpr bool is_made = std::constructible_from<Collectives, ThreadCommunicator> ||
                                 OpsOnQueue<OnThese, ThreadCommunicator, typename Device::Queue> ||
                                 OpsWithState<OnThese, Device>;
        static_assert(is_made,
                      "this policy works with queues of another device type than Mirrored<Ops, Device> names: leave "
                      "out the device if the policy is for one type, or use Mirrored<ThreadAllReduce>");
        constexpr bool reaches = ReducesMemoryIn<Collectives, float, Sum, typename Device::Space>;
        static_assert(reaches,
                      "this policy reduces host memory, which these devices do not share: use a policy for these "
                      "devices, or Mirrored<Ops, Cpu>");
        return is_made && reaches && require_operations<Collectives>();
      }
    }
    return false;
  }();

  using Checked = std::conditional_t<is_complete, OnThese, ThreadAllReduce>;
};

}  // namespace detail

/// Synchronous training on several devices of one process (spec A01): one replica per device, each with a copy of every
/// variable, and gradients reduced by `Ops`. By default, devices are GPUs for NcclAllReduce, and processors for other
/// policies.
template <class Ops, class DeviceType = detail::DefaultDevice<Ops, Cpu>>
class Mirrored
    : public BasicStrategy<Mirrored<Ops, DeviceType>,
                           ThreadReplicas<typename detail::MirroredPolicy<Ops, DeviceType>::Checked, DeviceType>,
                           OneProcess, MirroredStore> {
 public:
  /// Places one replica on each available device. All constructors throw InvalidArgument for invalid devices or
  /// replicas, and OutOfMemory if the system lacks threads or address space.
  Mirrored() : Mirrored(MirroredOptions{}) {}
  /// Places `replicas` replicas on the available devices.
  explicit Mirrored(std::size_t replicas) : Mirrored(Mirrored::Replicas::with_replicas(replicas)) {}
  /// Places one replica on each of `devices` (spec A01, A02): {"/cpu:1", "/cpu:0"}.
  explicit Mirrored(std::vector<std::string> devices) : Mirrored(Mirrored::Replicas::on_devices(std::move(devices))) {}
  /// Places the replicas according to `options`.
  explicit Mirrored(const MirroredOptions& options);

  /// "Mirrored<ThreadAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe() const;
};

template <class Ops, class DeviceType>
Mirrored<Ops, DeviceType>::Mirrored(const MirroredOptions& options) : Mirrored::BasicStrategy(options) {}

template <class Ops, class DeviceType>
std::string Mirrored<Ops, DeviceType>::describe() const {
  return concat("Mirrored<", Ops::name, ", ", DeviceType::name, ">: ", this->replicas_part().describe());
}

/// Error message for a Mirrored without a policy.
template <class... Arguments>
Mirrored(const Arguments&...) -> Mirrored<detail::NoOps>;

#ifdef DIST_COMPILED
extern template class BasicStrategy<Mirrored<ThreadAllReduce>, ThreadReplicas<ThreadAllReduce, Cpu>, OneProcess,
                                    MirroredStore>;
extern template class Mirrored<ThreadAllReduce>;
#endif

}  // namespace dist
