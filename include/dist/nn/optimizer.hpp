#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/store.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/never.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/vectors.hpp>
#include <dist/nn/optimizers/segments.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/policies.hpp>

namespace dist::nn {

namespace detail {

/// Throws InvalidArgument.
template <class Variable>
void require_trainable(const Variable& variable) {
  if (!variable.trainable())
    throw InvalidArgument(text("An optimizer was given variable '", variable.name(), "', which is not trainable"),
                          "it was made with Trainable::no, or OnRead", "Make it with Trainable::yes to train it");
}

/// Whether a network stores its gradients; networks other than nn::Network do.
template <class Network>
inline constexpr bool stores_gradients = true;
template <class Network>
  requires requires { Network::stores_gradients; }
inline constexpr bool stores_gradients<Network> = Network::stores_gradients;

struct IgnoreUpdate {
  template <class Update>
  void operator()(Update) const {}
};

/// weight[i] = update(weight[i], gradient[i], slots of i), one vectorised loop. The slots are loaded into and
/// stored from registers, so the functor itself touches no memory.
template <class Update, class T, std::size_t Count, std::size_t... K>
DIST_ALWAYS_INLINE void update_elements(const Update update, std::span<T> weights, std::span<const T> gradients,
                                        const std::array<T*, Count>& slots, std::index_sequence<K...>) {
  T* const weight = weights.data();
  const T* const gradient = gradients.data();
  T* const slot[Count + 1] = {slots[K]..., nullptr};
  const std::size_t size = weights.size();
  DIST_INDEPENDENT_LOOP
  for (std::size_t i = 0; i < size; ++i) {
    T registers[Count + 1] = {slot[K][i]..., T{}};
    weight[i] = update(weight[i], gradient[i], registers);
    ((slot[K][i] = registers[K]), ...);
  }
}

/// total[i] = finish(total[i] + values[i]), one vectorised loop.
template <class T, class Finish>
void accumulate(std::span<T> total, std::span<const T> values, const Finish finish) {
  T* DIST_RESTRICT const sums = total.data();
  const T* DIST_RESTRICT const terms = values.data();
  const std::size_t size = total.size();
  for (std::size_t i = 0; i < size; ++i) sums[i] = finish(static_cast<T>(sums[i] + terms[i]));
}

}  // namespace detail

/// The arithmetic of an optimizer: a struct of hyper-parameters, with `check()` for their ranges, whose
/// `with_update<T>(iteration, apply)` calls `apply(update)` with the functor of this step.
///
/// The functor is trivially copyable; `update(weight, gradient, slots)` returns the new weight and changes
/// the element's slots, all in registers, so that a CPU loop, a ring's pass and a kernel can inline the same
/// one. `Update::slots` names the slots, and so says how many there are.
template <class O>
concept OptimizerFunction = std::copyable<O> &&
    requires(O optimizer, std::int64_t iteration, detail::IgnoreUpdate apply) {
  { O::name } -> std::convertible_to<std::string_view>;
  { optimizer.learning_rate } -> std::same_as<float&>;
  optimizer.check();
  optimizer.template with_update<float>(iteration, apply);
};

/// The option of `apply_gradients` that applies the gradients as they are (spec P08).
struct SkipAggregation {};
inline constexpr SkipAggregation skip_aggregation{};

/// Applies gradients to the parameters of a network: `nn::Optimizer optimizer{strategy, net, nn::Adam{}};`
///
/// Slots are sharded: each replica keeps, and touches, only those of the parameters that it updates for all (OnRead,
/// Sum: read outside replica functions they are whole, but not after steps with `skip_aggregation`, see `slots`). Every
/// parameter has a gradient, zero where nothing flowed, so that none is ever missing (spec P09). Refers to the network,
/// which must outlive it.
template <class S, class Network, OptimizerFunction O>
class Optimizer {
  static_assert(
      !S::Store::shared || !(has_option<O, ClipValue> || has_option<O, ClipNorm> || has_option<O, GlobalClipNorm>),
      "gradients are not clipped under a strategy that keeps one copy of each variable, such as "
      "CentralStorage (spec P10): leave out nn::ClipValue, nn::ClipNorm and nn::GlobalClipNorm, or use Mirrored");

  /// Whether all gradients of the network lie in memory, to be looked at before they are applied.
  static constexpr bool stored = detail::stores_gradients<Network>;
  static_assert(stored ||
                    !(has_option<O, ClipNorm> || has_option<O, GlobalClipNorm> || has_option<O, AccumulateGradients>),
                "a network with nn::OwnerComputedGradients has no gradients in memory to take norms of or to "
                "accumulate: leave out nn::ClipNorm, nn::GlobalClipNorm and nn::AccumulateGradients, or use "
                "nn::StoredGradients");

 public:
  using Element = typename std::remove_cvref_t<decltype(std::declval<Network&>().parameters())>::Element;
  using Slot = decltype(std::declval<S&>().template variable<Element, OnRead, Sum>(Shape{}, 0, std::string{}));

  /// Throws InvalidArgument for hyper-parameters out of range and for parameters that are not trainable (spec G03),
  /// OutOfMemory.
  Optimizer(S& strategy, Network& network, O function)
      : function_(checked(std::move(function))),
        network_(&network),
        iterations_(strategy.template variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0,
                                                                                        text(O::name, "/iterations"))),
        progress_(strategy.template buffer<std::int64_t>(Shape{2}, text(O::name, "/progress"))) {
    detail::require_trainable(network.parameters());
    if constexpr (knows_lifetime) network_alive_ = network.lifetime();
    const std::size_t parameters = network.parameters().size();
    function_.template with_update<Element>(1, [&](auto update) {
      slots_.reserve(update.slots.size());
      for (const std::string_view slot : update.slots)
        slots_.push_back(
            strategy.template variable<Element, OnRead, Sum>(Shape{parameters}, 0, text(O::name, "/", slot)));
    });
    if constexpr (has_segments) {
      segments_ = detail::segments_of(network);
      if constexpr (has_option<O, WeightDecay>)
        for (detail::Segment& segment : segments_)
          segment.decays = function_.template get<WeightDecay>().applies_to(segment.name);
    }
    if constexpr (has_norm) {
      squares_.emplace(strategy.template buffer<double>(Shape{norms()}, text(O::name, "/squares")));
      if (strategy.num_replicas_in_sync() > 1)
        sums_.emplace(strategy.template buffer<Element>(Shape{parameters}, text(O::name, "/sums")));
    }
    if constexpr (has_option<O, AccumulateGradients>)
      accumulated_.emplace(strategy.template buffer<Element>(Shape{parameters}, text(O::name, "/accumulated")));
  }

  /// A network of another type than this optimizer's, for a sentence.
  template <class Other>
    requires(!std::same_as<Other, Network>)
  Optimizer(S& strategy, Other&, O function)
      : Optimizer(strategy, dist::detail::refused<Network&>(), std::move(function)) {
    static_assert(dist::detail::never<Other>,
                  "this optimizer is for another network than the one given: its type names the network, so let the "
                  "compiler deduce it, as in nn::Optimizer{strategy, net, nn::SGD{}}");
  }

  /// Sums the gradients over the replicas (spec P07) and updates every replica's parameters, in one pass over memory;
  /// where norms are clipped the sums are kept between two halves of it. Counts one iteration. A collective call.
  /// Throws InvalidArgument when gradients were applied without aggregation before, when the network has ended or has no
  /// gradients of a `backward` that were not applied yet, and what the network's `reduce_and_apply` throws.
  void apply_gradients(const InReplica auto& replica) { apply<true>(replica); }

  /// Updates this replica's own copy with its own gradients, without communication. What concerns the other
  /// replicas is done already, by an `all_reduce` of the gradients, or is left to the caller, whose copies then
  /// differ (spec P08). Copies that got the same gradients stay equal bit by bit as long as the processors of all
  /// replicas have fused multiply-add, or none has: it rounds once where two instructions round twice, so copies on
  /// unlike processors drift apart by a last bit now and then. Compile with -ffp-contract=off where they must not, or
  /// let the gradients be aggregated here: then one replica updates an element for all.
  ///
  /// Each replica keeps all slots for itself, so a step of this kind cannot be mixed with one that aggregates. Throws
  /// InvalidArgument for such a mixture.
  template <InReplica Replica>
  void apply_gradients(const Replica& replica, SkipAggregation) {
    static_assert(
        !StoreOf<Replica>::shared,
        "nn::skip_aggregation needs a copy of the parameters on every replica (spec P08): a strategy that keeps "
        "one copy of each variable, such as CentralStorage, cannot apply the gradients of each replica to it");
    static_assert(stored,
                  "nn::skip_aggregation needs each replica's own gradients, which a network with "
                  "nn::OwnerComputedGradients does not have: use nn::StoredGradients");
    apply<false>(replica);
  }

  template <InCrossReplica Context>
  void apply_gradients(const Context&, auto&&...) {
    static_assert(dist::detail::never<Context>,
                  "apply_gradients is called in a replica function, where gradients are computed (spec P07): use "
                  "strategy.run to enter one");
  }

  /// Replaces the weights by their average, if the optimizer keeps one (nn::AverageWeights). Call it when
  /// training ends, as Model::fit does (spec P11).
  void finalize(const InCrossReplica auto& context) {
    if constexpr (has_option<O, AverageWeights>) {
      if (iterations(context) == 0) return;
      require_network();
      auto& parameters = network_->parameters();
      if (progress_.component(context, 0)[applied] == as_given) {
        for (std::size_t local = 0; local < context.strategy().num_local_replicas(); ++local) {
          const std::span<const Element> average = slots_.back().component(context, local);
          std::copy_n(average.data(), average.size(), parameters.component(context, local).data());
        }
      } else {
        const auto average = slots_.back().read(context);
        parameters.assign(context, TensorView<const Element>{average});
      }
    }
  }

  /// Global steps so far (spec P12): updates, where several calls make up one.
  [[nodiscard]] std::int64_t iterations(const InCrossReplica auto& context) const { return iterations_.value(context); }
  [[nodiscard]] std::int64_t iterations(const InReplica auto& replica) const { return iterations_.value(replica); }

  [[nodiscard]] float learning_rate() const noexcept { return function_.learning_rate; }
  /// Sets the learning rate of the steps that follow; outside replica functions only. Throws InvalidArgument.
  void set_learning_rate(float rate) {
    O changed = function_;
    changed.learning_rate = rate;
    function_ = checked(std::move(changed));
  }

  [[nodiscard]] const O& function() const noexcept { return function_; }
  /// The state kept for each parameter, one variable as long as the parameters for each name of the functor's `slots`
  /// (spec P13). Outside replica functions `read` gives it whole after steps that aggregate, by adding up the replicas'
  /// shares. After steps with `skip_aggregation` each replica has a whole one of its own, and `read` would add these
  /// up: take `component(strategy.scope(), replica)` then.
  [[nodiscard]] std::span<const Slot> slots() const noexcept { return slots_; }
  /// The part of a slot that belongs to one parameter, outside replica functions: `slot(scope, "momentum",
  /// "dense/kernel")`. Throws InvalidArgument for a slot or a parameter that there is not.
  [[nodiscard]] Tensor<Element> slot(const InCrossReplica auto& scope, std::string_view name,
                                     std::string_view parameter) const {
    return detail::part_of(slot_named(name), scope, detail::parameter_named(Network::layout(), parameter));
  }
  /// Writes it: `values` are a tensor of the parameter's shape, a contiguous range of as many numbers, or one number for
  /// all elements. Each element is kept by the replica that updates it. Throws as `slot` does, and ShapeMismatch.
  template <class Values>
  void assign_slot(const InCrossReplica auto& scope, std::string_view name, std::string_view parameter,
                   const Values& values) {
    static_assert(stored,
                  "the slots of a network with nn::OwnerComputedGradients are divided among the replicas as its "
                  "gradients are: write slots of a network with nn::StoredGradients");
    if constexpr (stored) {
      const Slot& slot = slot_named(name);
      const Parameter& place = detail::parameter_named(Network::layout(), parameter);
      const auto given = dist::detail::given_to(detail::NamedPart<Element>{place.name(), place.shape}, values);
      const IndexRange range{place.offset, place.offset + place.shape.elements()};
      const bool each_has_all = progress_.component(scope, 0)[applied] == as_given;
      auto passed = scope.strategy().template buffer<Element>(Shape{slot.size()}, text(O::name, "/assigned"));
      scope.strategy().run([&](auto& replica) {
        const std::span<Element> mine = slot.component(replica);
        const auto write = [&](IndexRange written) {
          for (std::size_t i = std::max(range.begin, written.begin); i < std::min(range.end, written.end); ++i)
            mine[i] = given[i - range.begin];
        };
        if (each_has_all) return write(range);
        std::fill(mine.begin() + static_cast<std::ptrdiff_t>(range.begin),
                  mine.begin() + static_cast<std::ptrdiff_t>(range.end), Element{0});
        replica.barrier();  // one copy may be that of all
        replica.update_shards(passed.component(replica), [&](std::size_t first, std::span<Element> block) {
          write({first, first + block.size()});
        });
      });
    }
  }

 private:
  static constexpr bool has_norm = has_option<O, ClipNorm> || has_option<O, GlobalClipNorm>;
  /// Whether the network tells when it ends; others than nn::Network need not.
  static constexpr bool knows_lifetime = requires(const Network& network) { network.lifetime(); };
  static constexpr bool has_segments = has_norm || has_option<O, WeightDecay>;

  /// What `progress_` counts: calls since the last update, and how updates were applied.
  static constexpr std::size_t pending = 0;
  static constexpr std::size_t applied = 1;
  static constexpr std::int64_t aggregated = 1;
  static constexpr std::int64_t as_given = 2;

  [[nodiscard]] const Slot& slot_named(std::string_view name) const {
    std::string names;
    for (const Slot& slot : slots_) {
      if (slot.name() == text(O::name, "/", name)) return slot;
      names += text(names.empty() ? "" : ", ", slot.name());
    }
    throw InvalidArgument(text("Optimizer ", O::name, " has no slot '", name, "'"), text("it has ", names),
                          text("Use what follows ", O::name, "/ in one of these names"));
  }

  static O checked(O function) {
    function.check();
    return function;
  }

  template <bool aggregate, class Replica>
  void apply(const Replica& replica) {
    require_network();
    const std::span<std::int64_t> progress = progress_.component(replica);
    require_one_kind(replica, progress[applied], aggregate ? aggregated : as_given);
    const std::span<Element> gradient = gradient_of_call(replica, progress[pending]);
    if (progress[pending] != 0) return;
    const std::span<Element> mirror = network_->parameters().component(replica);
    std::span<double> squares{};
    std::span<const Element> sums = gradient;
    if constexpr (has_norm) {
      squares = squares_->component(replica);
      sums = sums_with_squares<aggregate>(replica, gradient, squares);
    }

    const std::int64_t iteration = iterations_.value(replica) + 1;
    function_.template with_update<Element>(iteration, [&](const auto update) {
      constexpr auto indices = std::make_index_sequence<decltype(update)::slots.size()>{};
      const auto slots = components(replica, indices);
      const auto update_block = [&](std::size_t first, std::span<Element> weights,
                                    std::span<const Element> gradients) DIST_INLINE_LAMBDA {
        if constexpr (has_segments) {
          detail::for_each_segment(
              segments_, first, weights.size(), [&](std::size_t which, IndexRange range) DIST_INLINE_LAMBDA {
                const std::size_t begin = range.begin - first;
                detail::update_elements(of_segment(update, which, squares), weights.subspan(begin, range.size()),
                                        gradients.subspan(begin, range.size()), offset(slots, range.begin, indices),
                                        indices);
              });
        } else {
          detail::update_elements(update, weights, gradients, offset(slots, first, indices), indices);
        }
      };
      if constexpr (!stored) {
        network_->reduce_and_apply(replica, update_block);
      } else if constexpr (!aggregate) {
        dist::detail::with_widest_vectors([&]<std::size_t>()
                                              DIST_INLINE_LAMBDA { update_block(std::size_t{0}, mirror, sums); });
      } else if constexpr (has_norm) {
        replica.update_shards(mirror, [&](std::size_t first, std::span<Element> weights) DIST_INLINE_LAMBDA {
          update_block(first, weights, sums.subspan(first, weights.size()));
        });
      } else {
        replica.reduce_and_apply(sum, gradient, mirror, update_block);
      }
    });
    iterations_.assign(replica, same(iteration));  // not aggregated: every replica counts alike (spec P12)
  }

  /// The gradient that this call applies, the mean of several calls' where these make up one update:
  /// `pending_calls` counts them, and is 0 when there is something to apply.
  [[nodiscard]] std::span<Element> gradient_of_call(const InReplica auto& replica,
                                                    [[maybe_unused]] std::int64_t& pending_calls) const {
    std::span<Element> gradient;
    if constexpr (requires { network_->take_gradients(replica); })
      gradient = network_->take_gradients(replica);
    else
      gradient = network_->gradients().component(replica);
    if constexpr (has_option<O, AccumulateGradients>) {
      const std::int64_t steps = function_.template get<AccumulateGradients>().steps;
      if (steps == 1) return gradient;
      const std::span<Element> total = accumulated_->component(replica);
      if (pending_calls == 0)
        std::copy(gradient.begin(), gradient.end(), total.begin());
      else if (pending_calls + 1 < steps)
        detail::accumulate(total, std::span<const Element>{gradient}, [](Element all) { return all; });
      else
        detail::accumulate(
            total, std::span<const Element>{gradient},
            [part = static_cast<Element>(steps)](Element all) { return static_cast<Element>(all / part); });
      pending_calls = (pending_calls + 1) % steps;
      return total;
    } else {
      return gradient;
    }
  }

  /// The gradients as they will be applied, of this replica's share where they are aggregated, and in `squares` their
  /// squared norms. Each replica keeps the sums of its share, so that the replicas' gradients are read once; what
  /// needs no sum stays where it is.
  template <bool aggregate, class Replica>
  [[nodiscard]] std::span<const Element> sums_with_squares(const Replica& replica, std::span<Element> gradient,
                                                           std::span<double> squares) const {
    std::fill(squares.begin(), squares.end(), 0.0);
    const auto add_squares = [&](std::size_t first, std::span<const Element> gradients) {
      detail::for_each_segment(segments_, first, gradients.size(), [&](std::size_t which, IndexRange range) {
        squares[has_option<O, ClipNorm> ? which : 0] +=
            detail::sum_of_squares(gradients.subspan(range.begin - first, range.size()));
      });
    };
    if constexpr (aggregate) {
      const std::span<Element> sums = sums_ ? sums_->component(replica) : gradient;
      replica.reduce_scatter(sum, gradient, [&](std::size_t first, std::span<const Element> reduced) {
        Element* const kept = sums.data() + first;
        if (kept != reduced.data()) std::copy(reduced.begin(), reduced.end(), kept);
        add_squares(first, reduced);
      });
      replica.all_reduce(sum, squares);
      return sums;
    } else {
      add_squares(0, gradient);
      return gradient;
    }
  }

  void require_network() const {
    if constexpr (knows_lifetime)
      if (network_alive_.expired())
        throw InvalidArgument(text("Optimizer ", O::name, " was used after its network had ended"),
                              "it refers to the network", "Keep the network as long as the optimizer");
  }

  /// Aggregated steps keep each slot on one replica, others on all of them.
  void require_one_kind(const InReplica auto& replica, std::int64_t& before, std::int64_t now) const {
    if (slots_.empty() || replica.num_replicas_in_sync() == 1) return;
    if (before != 0 && before != now)
      throw InvalidArgument(text("Optimizer ", O::name, " was used with and without nn::skip_aggregation"),
                            "with aggregation its slots are shared out among the replicas, without it each has its own",
                            "Use one kind of apply_gradients, or two optimizers");
    before = now;
  }

  /// The functor for the parameter of segment `which`: its part of the weight decay, its norm.
  template <class Update>
  [[nodiscard]] Update of_segment(Update update, std::size_t which,
                                  [[maybe_unused]] std::span<const double> squares) const {
    if constexpr (has_option<O, WeightDecay>)
      if (!segments_[which].decays) update.decay = 0;
    if constexpr (has_option<O, ClipNorm>) {
      const double limit = double{function_.template get<ClipNorm>().norm};
      const double norm = std::sqrt(squares[which]);
      update.scale = static_cast<Element>(limit / (norm <= limit ? limit : norm));  // NaN stays NaN
    }
    if constexpr (has_option<O, GlobalClipNorm>) {
      const double limit = double{function_.template get<GlobalClipNorm>().norm};
      const double norm = std::sqrt(squares[0]);
      update.scale = static_cast<Element>((norm <= limit ? 1.0 : limit / norm) + (norm - norm));
    }
    return update;
  }

  [[nodiscard]] std::size_t norms() const noexcept { return has_option<O, ClipNorm> ? segments_.size() : 1; }

  template <std::size_t... K>
  [[nodiscard]] std::array<Element*, sizeof...(K)> components([[maybe_unused]] const auto& replica,
                                                              std::index_sequence<K...>) const {
    return {slots_[K].component(replica).data()...};
  }
  template <std::size_t... K>
  [[nodiscard]] static std::array<Element*, sizeof...(K)> offset(
      [[maybe_unused]] const std::array<Element*, sizeof...(K)>& slots, [[maybe_unused]] std::size_t first,
      std::index_sequence<K...>) {
    return {slots[K] + first...};
  }

  template <class T>
  using Buffer = decltype(std::declval<S&>().template buffer<T>(Shape{}, std::string{}));

  O function_;
  Network* network_;
  std::weak_ptr<const void> network_alive_;
  decltype(std::declval<S&>().template variable<std::int64_t, OnWrite, OnlyFirstReplica>(Shape{}, 0,
                                                                                         std::string{})) iterations_;
  Buffer<std::int64_t> progress_;
  std::vector<Slot> slots_;
  std::vector<detail::Segment> segments_;
  std::optional<Buffer<double>> squares_;
  std::optional<Buffer<Element>> sums_;  // each replica touches its share
  std::optional<Buffer<Element>> accumulated_;
};

template <class S, class Network, class O>
Optimizer(S&, Network&, O) -> Optimizer<S, Network, O>;

}  // namespace dist::nn
