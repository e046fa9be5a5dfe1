#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/in_trace.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>  // and with it the communicators
#include <dist/context/strategy.hpp>
#include <dist/context/worker_copies.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/kernels/dense_bias_gradient.hpp>
#include <dist/nn/kernels/dense_kernel_gradient.hpp>
#include <dist/nn/network_state.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/nn/workspace.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist::nn {

/// A network on a strategy: `Net`, a Sequential, with its parameters in one variable and every replica's gradients in
/// a buffer of the same layout, so that one pass reduces and applies all that are stored.
///
/// `forward` and `backward` run in replica functions; each replica has its own memory for them, made on its
/// first step. `Storage` says where gradients are until they are applied: StoredGradients or OwnerComputedGradients.
template <class Net, Backend BackendType = Reference, class ElementType = float,
          GradientStorage Storage = StoredGradients>
class Network {
  static_assert(BackendType::template supports<ElementType>,
                "this back end does not compute with this element type: nn::OneDnn and nn::Cuda take float, "
                "nn::Reference any floating-point type");
  static_assert(Net::parameter_count > 0,
                "a network needs a layer with parameters: there is nothing to train in this nn::Sequential");

 public:
  using Architecture = Net;
  using Backend = BackendType;
  using Element = ElementType;
  using Parameters = DistributedVariable<Element, OnWrite, None, typename Backend::Device>;
  using Gradients = ReplicaBuffer<Element, typename Backend::Device>;
  using State = NetworkState<Net, Element, typename Backend::Device>;
  using Space = typename Backend::Device::Space;
  using Span = typename Backend::Device::template Span<Element>;

  /// Whether the gradients of all parameters are stored.
  static constexpr bool stores_gradients = []<std::size_t... Layer>(std::index_sequence<Layer...>) {
    return (Storage::template stores<typename Net::template Layer<Layer>> && ...);
  }
  (std::make_index_sequence<Net::layer_count>{});
  static_assert(stores_gradients || std::same_as<Element, float> || std::same_as<Element, double>,
                "nn::OwnerComputedGradients computes with float and double: use one of them, or nn::StoredGradients");
  static_assert(stores_gradients || Space::host_accessible,
                "nn::OwnerComputedGradients computes on the host: use nn::StoredGradients with a back end on GPUs");
  static_assert(stores_gradients || !RoundsFactors<Backend>,
                "nn::OwnerComputedGradients multiplies numbers as they are: use nn::StoredGradients with "
                "nn::MixedPrecision, which rounds them");

  /// Elements of all parameters, and the elements of the variables that hold them with padding between.
  static constexpr std::size_t parameter_count = Net::parameter_count;
  static constexpr std::size_t padded_count = Net::padded_count;

  /// Parameters are initialised from `seed`, the same on every replica. Throws OutOfMemory.
  template <Strategy S>
    requires std::same_as<typename S::Device, typename Backend::Device>
  explicit Network(S& strategy, std::uint64_t seed = 0)
      : variables_made_(strategy),
        seed_(seed),
        parameters_(dist::detail::variable_of_tensors<Element, OnWrite, None>(
            strategy, Shape{padded_count}, [&](TensorView<Element> all) { Net::initialize(all, seed); }, "parameters",
            layout())),
        gradients_(strategy.template buffer<Element>(Shape{padded_count}, "gradients")),
        state_(strategy, seed),
        slots_(strategy.num_local_replicas()) {
    static_assert(stores_gradients || ReplicasShareMemory<S>,
                  "nn::OwnerComputedGradients needs replicas in one address space, whose activations the owners of a "
                  "kernel read where they are: use nn::StoredGradients with a strategy of several processes, such as "
                  "MultiWorker");
    static_assert(stores_gradients || !RemoteStore<typename S::Store>,
                  "a ParameterServer takes gradients from memory: use nn::StoredGradients");
  }
  /// What it does not take, for a sentence.
  template <Strategy S>
    requires(!std::same_as<typename S::Device, typename Backend::Device>)
  explicit Network(S&, std::uint64_t = 0) : Network(Refused{}) {
    static_assert(
        dist::detail::always_false<S>,
        "the back end of this network computes on another device than the strategy's replicas: give nn::Network a "
        "back end for that device, or use a strategy on the back end's device");
  }
  template <dist::detail::NoStrategy Other>
    requires(!std::same_as<std::remove_cvref_t<Other>, Network>)
  explicit Network(Other&&, std::uint64_t = 0) : Network(Refused{}) {
    static_assert(dist::detail::always_false<Other>, DIST_NEEDS_STRATEGY("a network", "Net net{strategy}"));
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
  // See HasWorkerCopies.
  [[nodiscard]] const VariablesMade& variables_made() const noexcept { return variables_made_; }
  [[nodiscard]] std::tuple<std::uint64_t> arguments() const noexcept { return {seed_}; }
  /// Whoever takes them may write them: from then on `take_gradients` does not ask for a `backward`.
  [[nodiscard]] Gradients& gradients() noexcept {
    require_stored_gradients();
    if (!may_be_written_.load(std::memory_order_relaxed)) may_be_written_.store(true, std::memory_order_relaxed);
    return gradients_;
  }
  [[nodiscard]] const Gradients& gradients() const noexcept {
    require_stored_gradients();
    return gradients_;
  }

  /// For an optimizer that applies this replica's gradients, once for each `backward`: they are what the last one left,
  /// and none where they are not stored. Throws InvalidArgument when they were taken before, or there was no `backward`.
  [[nodiscard]] Span take_gradients(const InReplica auto& replica) {
    const Span gradients = gradients_.component(replica);
    Slot& slot = slots_[replica.local_index()];
    if (!slot.has_gradients && !may_be_written_.load(std::memory_order_relaxed))
      detail::refuse_gradients(replica, slot.has_computed,
                               "Call forward, a loss and backward before each apply_gradients, or renew_gradients to "
                               "apply them once more");
    slot.has_gradients = false;
    return stores_gradients ? gradients : Span{};
  }

  /// In a step that is compiled, the parameters and the gradients of the last `backward`, as a traced array for each
  /// parameter of the layout. Throws InvalidArgument where there was no `backward`.
  [[nodiscard]] auto traced_parameters(const InTrace auto& trace) { return Backend::parameters(trace, *this); }
  [[nodiscard]] auto traced_gradients(const InTrace auto& trace) { return Backend::gradients(trace, *this); }
  /// Adds to the gradient of a parameter, by its number in the layout. Throws as `traced_gradients`.
  template <class Array>
  void add_gradient(const InTrace auto& trace, std::size_t parameter, const Array& more) {
    Backend::add_gradient(trace, *this, parameter, more);
  }

  /// Lets an optimizer apply the gradients of this replica's last `backward` once more.
  void renew_gradients(const InReplica auto& replica) {
    Slot& slot = slots_[replica.local_index()];
    slot.has_gradients = slot.has_computed;
  }

  /// Expires with the network, for those that refer to it.
  [[nodiscard]] std::weak_ptr<const void> lifetime() const noexcept { return lifetime_; }

  /// Throws ShapeMismatch unless the rows of a batch of this shape, if there are any, are the network's inputs; axes of extent 1
  /// at the end may be there or not.
  static void require_rows_of_input_shape(const Shape& batch) {
    if (batch.rank() > 0 && batch[0] == 0) return;  // a replica without rows leaves the error to the others
    const Shape expected = Net::InputShape::shape();
    if (batch.rank() == 0 || without_trailing_ones(batch.row()) != without_trailing_ones(expected))
      throw ShapeMismatch(
          "A batch does not fit the network's input",
          concat("the batch has shape ", to_string(batch), ", the network takes rows of shape ", to_string(expected)),
          "Give the batch as [rows, ...] with rows of that shape, or change nn::Input");
  }

  /// Name, shape and offset of every parameter in both variables.
  [[nodiscard]] static constexpr std::span<const Parameter> layout() noexcept { return Net::parameters; }

  /// A replica's copy of parameter `Which` (0 the kernel or gamma, 1 the bias or beta) of layer `Layer`, counted
  /// without the Input.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] TensorView<Element, Space> parameter(const InReplica auto& replica) const {
    require_parameter<Layer, Which>();
    return Net::template layer_parameters<Layer, Space>(parameters_.component(replica).data())[Which];
  }
  /// The same outside replica functions, as a tensor of its own; also by its name in `layout()`, such as
  /// "dense_1/kernel". Throws InvalidArgument for a name that no parameter has.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] Tensor<Element> parameter(const InCrossReplica auto& scope) const {
    require_parameter<Layer, Which>();
    return detail::part_of(parameters_, scope, Net::parameters[Net::first_parameter[Layer] + Which]);
  }
  [[nodiscard]] Tensor<Element> parameter(const InCrossReplica auto& scope, std::string_view name) const {
    return detail::part_of(parameters_, scope, detail::parameter_named(layout(), name));
  }
  /// Writes a parameter outside replica functions, in every copy: `values` are a tensor of its shape, a contiguous range
  /// of as many numbers, or one number for all elements. Throws InvalidArgument for a name that no parameter has,
  /// ShapeMismatch.
  template <class Values>
  void assign_parameter(const InCrossReplica auto& scope, std::string_view name, const Values& values) {
    ParameterPart{parameters_, detail::parameter_named(layout(), name)}.restore(scope, values);
  }
  /// The same of the gradients.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] TensorView<Element, Space> gradient(const InReplica auto& replica) const {
    static_assert(Which > 0 || stores<Layer>,
                  "the kernel gradient of this layer is computed by its owners when it is applied: use "
                  "nn::StoredGradients to look at it");
    return Net::template layer_parameters<Layer, Space>(gradients_.component(replica).data())[Which];
  }

  /// What the layers keep but do not learn, such as the moving statistics of BatchNormalization: an OnRead variable
  /// with aggregation Mean, and the name, shape and offset of what lies in it.
  [[nodiscard]] auto& state() noexcept requires(Net::state_count > 0) { return state_.variable(); }
  [[nodiscard]] static constexpr std::span<const Parameter> state_layout() noexcept { return Net::state; }

  /// A replica's view of state `Which` of layer `Layer`.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] auto state(const InReplica auto& replica) const {
    return Net::template layer_state<Layer, Space>(state_.read(replica).data())[Which];
  }

  /// Its parameters and what its layers keep, by their names in the layouts. See Trackable.
  void track(auto& visit) {
    for (const Parameter& parameter : layout()) visit(parameter.name(), ParameterPart{parameters_, parameter});
    if constexpr (Net::state_count > 0) TrackedParts{state_.variable(), state_layout()}.track(visit);
  }

  /// The network's output for a batch, and where the loss writes its gradient. For evaluation and prediction give
  /// `nn::inference`: layers such as BatchNormalization then compute with what they have learnt and kept, instead of
  /// with statistics of the batch.
  ///
  /// `x` has any number of rows, even none, of the network's input shape; axes of extent 1 at the end may be there or
  /// not. It must stay as it is until `backward`, or until gradients are applied where they are not stored. A
  /// collective call in training if a layer is synchronised, drops elements (Dropout), or keeps state where the replicas
  /// share one copy of each variable. Throws ShapeMismatch, OutOfMemory and what the back end throws.
  template <InReplica Replica, ForwardMode Mode = Training>
  [[nodiscard]] Outputs<Element, Space> forward(const Replica& replica, TensorView<const Element, Space> x, Mode = {}) {
    require_rows_of_input_shape(x.shape());
    const auto parameters = parameters_.copy(replica);  // first: it refuses a replica of another strategy
    const auto before_use = [&] {
      if constexpr (RemoteStore<StoreOf<Replica>>)  // layer by layer: those behind may still be on their way
        return [&](IndexRange elements) { StoreOf<Replica>::await(replica, parameters_, elements); };
      else
        return NoOp{};
    }();
    auto& workspace = slots_[replica.local_index()].workspace;
    if (workspace == nullptr) workspace = std::make_unique<Workspace>(replica.queue());
    [[maybe_unused]] std::size_t first_row = 0;
    if constexpr (Net::uses_global_rows && std::same_as<Mode, Training>) first_row = rows_before(replica, x.rows());
    const auto compute = [&](const auto state) {
      using S = std::remove_pointer_t<decltype(state.data())>;
      return workspace->forward(parameters, x, ForwardPass<Replica, Mode, S, Space>{replica, state.data(), first_row},
                                before_use);
    };
    if constexpr (!Net::uses_replica) {
      return workspace->forward(parameters, x, NoReplica{}, before_use);
    } else if constexpr (std::same_as<Mode, Training>) {
      return state_.update(replica, compute);
    } else {
      return compute(state_.read(replica));
    }
  }

  /// The output as a traced array, in a step that is compiled: what the program computes for it. `x` is a traced array. Throws
  /// ShapeMismatch.
  template <class X, ForwardMode Mode = Training>
  [[nodiscard]] auto forward(const InTrace auto& trace, const X& x, Mode mode = {}) {
    static_assert(TracesNetworks<Backend>,
                  "the back end of this network computes on the host, and a compiled step on devices of XLA: give "
                  "nn::Network the back end nn::Xla");
    if constexpr (TracesNetworks<Backend>) return Backend::forward(trace, *this, x, mode);
  }

  /// What it does not take, for sentences.
  template <InCrossReplica Scope, class Input, class... Mode>
  [[nodiscard]] Outputs<Element, Space> forward(const Scope&, const Input&, Mode...) {
    static_assert(dist::detail::always_false<Input>,
                  "forward is called in a replica function: use strategy.run to enter one, or a function that a "
                  "ClusterCoordinator schedules");
    return dist::detail::refused<Outputs<Element, Space>>();
  }
  template <InReplica Replica, class Input, ForwardMode Mode = Training>
    requires(!std::convertible_to<const Input&, TensorView<const Element, Space>>)
  [[nodiscard]] Outputs<Element, Space> forward(const Replica&, const Input&, Mode = {}) {
    static_assert(
        dist::detail::always_false<Input> || Space::host_accessible,
        "this network computes in memory of a device, and takes a dist::TensorView of its element type there: "
        "copy the batch into a strategy.buffer with replica.queue().copy");
    static_assert(dist::detail::always_false<Input> || !Space::host_accessible,
                  "forward takes a dist::Tensor or dist::TensorView of the network's element type, float unless it is "
                  "named: over other memory make dist::TensorView<const float>{data, shape}");
    return dist::detail::refused<Outputs<Element, Space>>();
  }

  /// The gradients of all parameters for the batch of the last `forward`, in the mode of that, from what `loss` wrote
  /// into its outputs' gradient. Overwrites all stored gradients; without rows they are zero. `loss` is named to say
  /// that it comes before. A collective call if a layer is synchronised.
  template <class Loss>
  void backward(const InReplica auto& replica, const Loss&) {
    compute_gradients(replica, NoOp{});
  }
  /// The same in a step that is compiled, of a traced `loss` that was computed from the last `forward` in this step.
  template <class Loss>
  void backward(const InTrace auto& trace, const Loss& loss) {
    Backend::backward(trace, *this, loss);
  }
  /// The same, calling `when_ready(elements)` on this replica's thread as soon as a part of its gradients is final,
  /// while those of the layers before are still to be computed: `elements` are an IndexRange of the replica's component
  /// of `gradients()`. The parts follow each other from the last layer to the first and together are all elements, also
  /// without rows. They are the gradients of this one batch: where an update sums up those of several, this is not yet
  /// what is applied.
  template <class Loss, std::invocable<IndexRange> WhenReady>
  void backward(const InReplica auto& replica, const Loss&, WhenReady&& when_ready) {
    static_assert(stores_gradients || std::same_as<std::remove_cvref_t<WhenReady>, NoOp>,
                  "a network with nn::OwnerComputedGradients has no gradients in memory that could be ready: use "
                  "nn::StoredGradients");
    compute_gradients(replica, when_ready);
  }

  /// Sums the gradients of the last `backward` over the replicas and applies them to the parameters, as
  /// `ReplicaContext::reduce_and_apply` does, by an ElementUpdate. A kernel gradient that is not stored is computed for
  /// the owner's share of the kernel, from the activations of all replicas. A collective call. Throws InvalidArgument
  /// when such activations are gone, because a `forward` followed the `backward`, or there was none.
  template <InReplica Replica, class Update>
  void reduce_and_apply(const Replica& replica, const Update& update) {
    if constexpr (dist::detail::require_element_update<Update, Element>()) {
      const Span parameters = parameters_.component(replica);
      if constexpr (!stores_gradients) require_batches(replica);
      for_each_part(
          [&]<IndexRange Range>()
              DIST_INLINE_LAMBDA { apply_stored<Range>(replica, gradients_.component(replica), parameters, update); },
          [&]<std::size_t Layer, std::size_t Offset>()
              DIST_INLINE_LAMBDA { apply_owned<Layer, Offset>(replica, parameters, update); });
    }
  }

  /// `values[i] = update(i, values[i], given[i])` for the elements that are this replica's to update in
  /// `reduce_and_apply`; every replica's values then hold what the owners made of theirs. A collective call.
  template <InReplica Replica, class Update>
  static void update_shards(const Replica& replica, std::span<const Element> given, std::span<Element> values,
                            const Update& update) {
    for_each_part(
        [&]<IndexRange Range>() {
          if constexpr (Range.size() > 0)
            replica.update_shards(given.subspan(Range.begin, Range.size()), values.subspan(Range.begin, Range.size()),
                                  dist::detail::ShiftedUpdate<Update>{update, Range.begin});
        },
        [&]<std::size_t Layer, std::size_t Offset>() { update_owned<Layer, Offset>(replica, given, values, update); });
  }

 private:
  struct Refused {};
  explicit Network(Refused);  // never defined
  using Workspace = nn::Workspace<Net, Backend, Element, Storage>;

  /// What a replica lends to the owners of a kernel.
  struct LentLayer {
    kernels::DenseBatch<Element> batch;
    Element* kernel;
  };

  /// On cache lines of their own, because each is written by another thread.
  struct alignas(cache_line) Slot {
    std::unique_ptr<Workspace> workspace;
    std::vector<kernels::DenseBatch<Element>> batches;  // of all replicas, kept for its memory
    bool has_computed = false;                          // a backward was called
    bool has_gradients = false;                         // of the last backward, which nobody took yet
  };

  template <std::size_t Layer>
  static constexpr bool stores = Storage::template stores<typename Net::template Layer<Layer>>;

  template <std::size_t Layer, std::size_t Which>
  static constexpr void require_parameter() {
    static_assert(Which < Net::template Layer<Layer>::parameters.size(),
                  "the layer does not have so many parameters: layers are counted from 0 without the Input, and some, "
                  "such as Flatten, have none; see layout()");
  }

  template <class WhenReady>
  void compute_gradients(const InReplica auto& replica, WhenReady&& when_ready) {
    const auto parameters = parameters_.component(replica);
    if constexpr (RemoteStore<StoreOf<decltype(replica)>>) StoreOf<decltype(replica)>::renew(replica, parameters_);
    auto& workspace = slots_[replica.local_index()].workspace;
    if (workspace == nullptr)
      throw InvalidArgument("A network's backward was called before its forward",
                            concat("replica ", replica.replica_id().index(), " has computed no batch yet"),
                            "Call forward and a loss first, in the same replica");
    if constexpr (Net::uses_replica) {
      workspace->backward(parameters, gradients_.component(replica), replica, when_ready);
    } else {
      workspace->backward(parameters, gradients_.component(replica), NoReplica{}, when_ready);
    }
    Slot& slot = slots_[replica.local_index()];
    slot.has_computed = slot.has_gradients = true;
  }

  /// The rows of the global batch before this replica's. A collective call.
  [[nodiscard]] static std::size_t rows_before(const InReplica auto& replica, std::size_t rows) {
    PerReplica<std::size_t> all(replica.num_replicas_in_sync());
    replica.collectives().all_gather_values("rows of a batch", rows, std::span<std::size_t>{all.begin(), all.size()});
    std::size_t before = 0;
    for (std::size_t rank = 0; rank < replica.replica_id().index(); ++rank) before += all.begin()[rank];
    return before;
  }

  static constexpr void require_stored_gradients() {
    static_assert(stores_gradients,
                  "a network with nn::OwnerComputedGradients has no gradients in memory: use nn::StoredGradients to "
                  "look at them, change them or keep them");
  }

  void require_batches(const InReplica auto& replica) const {
    const auto& workspace = slots_[replica.local_index()].workspace;
    if (workspace != nullptr && workspace->has_batches()) return;
    throw InvalidArgument("A network's gradients were to be applied, but what they are computed from is not there",
                          concat("replica ", replica.replica_id().index(),
                                 " has called no backward since its last forward, and the network has "
                                 "nn::OwnerComputedGradients"),
                          "Call forward, backward and apply_gradients in this order, or use nn::StoredGradients");
  }

  /// Calls `stored<range>()` and `owned<layer, offset>()` for the parts of the parameters, in their order from element
  /// `Begin` on, which lies in the parameters of layer `Layer` or of one before: those with stored gradients, and the
  /// kernels whose gradients their owners compute.
  template <std::size_t Layer = 0, std::size_t Begin = 0, class Stored, class Owned>
  static void for_each_part(const Stored& stored, const Owned& owned) {
    if constexpr (Layer == Net::layer_count) {
      stored.template operator()<IndexRange{Begin, padded_count}>();
    } else if constexpr (stores<Layer>) {
      for_each_part<Layer + 1, Begin>(stored, owned);
    } else {
      constexpr std::size_t kernel = Net::parameters[Net::first_parameter[Layer]].offset;
      constexpr std::size_t bias = Net::parameters[Net::first_parameter[Layer] + 1].offset;
      stored.template operator()<IndexRange{Begin, kernel}>();
      owned.template operator()<Layer, kernel>();
      for_each_part<Layer + 1, bias>(stored, owned);
    }
  }
  template <IndexRange Range, class Replica, class Update>
  void apply_stored(const Replica& replica, Span gradients, Span parameters, const Update& update) {
    if constexpr (Range.begin == 0 && Range.end == padded_count) {
      replica.reduce_and_apply(sum, gradients, parameters, update);
    } else if constexpr (Range.size() > 0) {
      replica.reduce_and_apply(sum, gradients.subspan(Range.begin, Range.size()),
                               parameters.subspan(Range.begin, Range.size()),
                               dist::detail::ShiftedUpdate<Update>{update, Range.begin});
    }
  }
  template <std::size_t Layer, std::size_t Offset, class Replica, class Update>
  void apply_owned(const Replica& replica, std::span<Element> parameters, const Update& update) {
    using Geometry = typename Net::template Layer<Layer>::Geometry;
    const std::size_t replicas = replica.num_replicas_in_sync();
    Slot& slot = slots_[replica.local_index()];
    slot.batches.resize(replicas);
    LentLayer mine{slot.workspace->template dense_batch<Layer>(), parameters.data() + Offset};
    replica.share("apply_gradients of a dense kernel", mine, [&](auto&& peers) {
      for (std::size_t rank = 0; rank < replicas; ++rank) slot.batches[rank] = peers(rank).batch;
      const bool past_caches = dist::detail::exceeds_caches<Element>(Geometry::inputs * Geometry::units);
      kernels::dense_kernel_gradient<Geometry::inputs, Geometry::units>(
          std::span<const kernels::DenseBatch<Element>>{slot.batches}, owned_inputs<Layer>(replica),
          [&](std::size_t first, std::span<const Element> reduced) DIST_INLINE_LAMBDA {
            const std::span<Element> weights{mine.kernel + first, reduced.size()};
            dist::detail::update_block(update, Offset + first, weights, reduced);
            dist::detail::copy_to_others<Element>(
                replicas, [&](std::size_t rank) { return peers(rank).kernel + first; }, weights, past_caches);
          },
          mine.kernel);
      dist::detail::finish_streams();
    });
  }

  /// The inputs of layer `Layer` whose rows of the kernel this replica updates for all.
  template <std::size_t Layer>
  [[nodiscard]] static IndexRange owned_inputs(const InReplica auto& replica) {
    constexpr std::size_t granule = 16;  // inputs that the kernel computes together: shards end where blocks do
    return shard_of(Net::template Layer<Layer>::Geometry::inputs, replica.replica_id().index(),
                    replica.num_replicas_in_sync(), granule);
  }
  template <std::size_t Layer, std::size_t Offset>
  static void update_owned(const InReplica auto& replica, std::span<const Element> given, std::span<Element> values,
                           const auto& update) {
    using Geometry = typename Net::template Layer<Layer>::Geometry;
    const IndexRange inputs = owned_inputs<Layer>(replica);
    const IndexRange mine{Offset + inputs.begin * Geometry::units, Offset + inputs.end * Geometry::units};
    replica.share("update_shards of a dense kernel", values, [&](auto&& peers) {
      for (std::size_t i = mine.begin; i < mine.end; ++i) values[i] = update(i, values[i], given[i]);
      dist::detail::copy_to_others<Element>(
          replica.num_replicas_in_sync(), [&](std::size_t rank) { return peers(rank).data() + mine.begin; },
          values.subspan(mine.begin, mine.size()), false);
    });
  }

  [[nodiscard]] static Shape without_trailing_ones(const Shape& shape) {
    std::size_t rank = shape.rank();
    while (rank > 0 && shape[rank - 1] == 1) --rank;
    return Shape{shape.extents().first(rank)};
  }

  VariablesMade variables_made_;
  std::uint64_t seed_;
  Parameters parameters_;
  Gradients gradients_;
  [[no_unique_address]] State state_;
  std::vector<Slot> slots_;
  std::atomic<bool> may_be_written_{false};
  std::shared_ptr<const void> lifetime_ = std::make_shared<char>();
};

}  // namespace dist::nn
