#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

namespace detail {
template <class T>
struct AddTerm {
  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t, T total, T term) const { return static_cast<T>(total + term); }
};
template <class T>
struct AddTermAndDivide {
  T parts;
  DIST_HD DIST_ALWAYS_INLINE T operator()(std::size_t, T total, T term) const {
    return static_cast<T>(static_cast<T>(total + term) / parts);
  }
};
}  // namespace detail

/// Adds up the gradients of several calls on each replica, without communication (nn::AccumulateGradients).
template <class S, class T>
class GradientAccumulation {
  template <class U>
  using Buffer = decltype(std::declval<S&>().template buffer<U>(Shape{}, std::string{}));

 public:
  /// A replica's gradients.
  using Span = typename Buffer<T>::Span;

  /// `layout`, the places of the parameters, must outlive this object. Throws OutOfMemory.
  GradientAccumulation(S& strategy, std::size_t elements, std::string_view optimizer,
                       std::span<const Parameter> layout = {})
      : layout_(layout),
        total_(strategy.template buffer<T>(Shape{elements}, concat(optimizer, "/accumulated"))),
        calls_(strategy.template host_buffer<std::int64_t>(Shape{1}, concat(optimizer, "/accumulated_calls"))) {}

  /// Adds this replica's gradient of one call. Returns their mean in the last of `steps` calls, and nothing before.
  [[nodiscard]] std::optional<Span> add(const InReplica auto& replica, Span gradient, std::int64_t steps) const {
    if (steps == 1) return gradient;
    const Span total = total_.component(replica);
    std::int64_t& calls = calls_.component(replica)[0];
    const auto queue = total_.queue(replica);
    if (calls == 0)
      queue.copy(gradient, total);
    else if (calls + 1 < steps)
      dist::detail::update_on(queue, detail::AddTerm<T>{}, total, gradient);
    else
      dist::detail::update_on(queue, detail::AddTermAndDivide<T>{static_cast<T>(steps)}, total, gradient);
    calls = (calls + 1) % steps;
    if (calls != 0) return std::nullopt;
    return total;
  }

  /// Adds this replica's gradients in a compiled step, an array per parameter of `layout`. The first, the last and
  /// other calls have separate programs.
  template <InTrace Trace, class Array>
  [[nodiscard]] std::optional<std::vector<Array>> add(const Trace& trace, const auto& layout,
                                                      std::vector<Array> gradients, std::int64_t steps) const {
    if (steps == 1) return gradients;
    const std::int64_t before = trace.count_call(this);
    const std::int64_t call = trace.choice([this, before, steps, strategy = &trace.strategy()] {
      const std::int64_t calls = (calls_.component(strategy->scope(), 0)[0] + before) % steps;
      return calls == 0 ? first : calls + 1 < steps ? between : last;
    });
    trace.afterwards([this, steps, strategy = &trace.strategy()] {
      const auto context = strategy->scope();
      for (std::size_t local = 0; local < strategy->num_local_replicas(); ++local) {
        std::int64_t& calls = calls_.component(context, local)[0];
        calls = (calls + 1) % steps;
      }
    });
    if (call != first) {
      const auto totals = trace.read_parts(total_, layout);
      for (std::size_t which = 0; which < totals.size(); ++which) gradients[which] += Array{totals[which]};
    }
    if (call == last) {
      for (Array& gradient : gradients) gradient /= Array{static_cast<T>(steps)};
      return gradients;
    }
    std::vector<std::remove_cvref_t<decltype(gradients[0].value())>> values;
    for (const Array& gradient : gradients) values.push_back(gradient.value());
    trace.write_parts(total_, layout, values);
    return std::nullopt;
  }

  /// Tracks the number of calls since the last mean, and the sum of the replicas' totals, which the update will apply,
  /// split by `layout` if given. See Trackable.
  void track(auto& visit) {
    visit("calls", TrackedBuffer<decltype(calls_), OnlyFirstReplica>{calls_});
    detail::visit_parts(visit, "total", TrackedBuffer<Buffer<T>, Sum>{total_}, layout_);
  }

 private:
  /// The position of a call within an update.
  static constexpr std::int64_t first = 0, between = 1, last = 2;

  std::span<const Parameter> layout_;
  Buffer<T> total_;
  // Calls since the last mean.
  decltype(std::declval<S&>().template host_buffer<std::int64_t>(Shape{}, std::string{})) calls_;
};

}  // namespace dist::nn
