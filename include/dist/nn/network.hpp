#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
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
#include <dist/core/light_memory.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/streaming.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/chain.hpp>
#include <dist/nn/check.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/kernels/dense_kernel_gradient.hpp>
#include <dist/nn/network_state.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/nn/values.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/given_value.hpp>
#include <dist/variable/layout.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist::nn {

/// A network on a strategy: `Net`, a Sequential, with its parameters in one variable and every replica's gradients in a
/// buffer of the same layout, so that one pass reduces and applies all stored gradients. `forward` and `backward` run
/// in replica functions; each replica allocates memory for them in its first step. `Storage` is StoredGradients or
/// OwnerComputedGradients.
template <class Net, Backend BackendType = Reference, class ElementType = float,
          GradientStorage Storage = StoredGradients>
class Network {
  static_assert(BackendType::template supports<ElementType>,
                "this back end does not support this element type: nn::OneDnn and nn::Cuda support float, "
                "nn::Reference any floating-point type");
  static_assert(Net::parameter_count > 0,
                "a network needs a layer with parameters: this nn::Sequential has nothing to train");

 public:
  /// The nn::Sequential of the network.
  using Architecture = Net;
  /// The implementation of the layers.
  using Backend = BackendType;
  /// The type of parameters and gradients.
  using Element = ElementType;
  /// One variable with the parameters of all layers.
  using Parameters = DistributedVariable<Element, OnWrite, None, typename Backend::Device>;
  /// One buffer with the gradients of all parameters.
  using Gradients = ReplicaBuffer<Element, typename Backend::Device>;
  /// The variable with the state of all layers.
  using State = NetworkState<Net, Element, typename Backend::Device>;
  /// The memory space of the back end's device.
  using Space = typename Backend::Device::Space;
  /// Elements in the memory of the back end's device.
  using Span = typename Backend::Device::template Span<Element>;

  /// True if the gradients of all parameters are stored.
  static constexpr bool stores_gradients = []<std::size_t... Layer>(std::index_sequence<Layer...>) {
    return (Storage::template stores<typename Net::template Layer<Layer>> && ...);
  }
  (std::make_index_sequence<Net::layer_count>{});
  static_assert(stores_gradients || std::same_as<Element, float> || std::same_as<Element, double>,
                "nn::OwnerComputedGradients computes with float and double: use one of them, or nn::StoredGradients");
  static_assert(stores_gradients || Space::host_accessible,
                "nn::OwnerComputedGradients computes on the host: use nn::StoredGradients with a back end on GPUs");
  static_assert(stores_gradients || !RoundsFactors<Backend>,
                "nn::OwnerComputedGradients multiplies numbers without rounding them: use nn::StoredGradients with "
                "nn::MixedPrecision, which rounds them");

  /// Elements of all parameters, without and with padding.
  static constexpr std::size_t parameter_count = Net::parameter_count;
  /// Elements of all parameters with padding: the size of `parameters()`.
  static constexpr std::size_t padded_count = Net::padded_count;

  /// Initialises the parameters from `seed`, equally on every replica. Throws OutOfMemory.
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
                  "nn::OwnerComputedGradients needs replicas in one address space, because the owners of a kernel read "
                  "the activations of all replicas: use nn::StoredGradients with a strategy of several processes, such "
                  "as MultiWorker");
    static_assert(stores_gradients || !RemoteStore<typename S::Store>,
                  "a ParameterServer needs gradients in memory: use nn::StoredGradients");
  }
  /// Report unsupported arguments.
  template <Strategy S>
    requires(!std::same_as<typename S::Device, typename Backend::Device>)
  explicit Network(S&, std::uint64_t = 0) : Network(Refused{}) {
    static_assert(dist::detail::always_false<S>,
                  "the back end of this network computes on a different device than the strategy's replicas: give "
                  "nn::Network a back end for the replicas' device, or use a strategy on the back end's device");
  }
  /// Error message for a first argument that is not a strategy.
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
  /// Returns the gradients for reading and writing: from then on `take_gradients` requires no `backward`.
  [[nodiscard]] Gradients& gradients() noexcept {
    require_stored_gradients();
    if (!may_be_written_.load(std::memory_order_relaxed)) may_be_written_.store(true, std::memory_order_relaxed);
    return gradients_;
  }
  /// Returns the gradients for reading.
  [[nodiscard]] const Gradients& gradients() const noexcept {
    require_stored_gradients();
    return gradients_;
  }

  /// Returns the gradients of this replica's last `backward` to an optimizer, once for each; an empty span if they are
  /// not stored. Throws InvalidArgument if they were taken before, or without a `backward`.
  [[nodiscard]] Span take_gradients(const InReplica auto& replica) {
    const Span gradients = gradients_.component(replica);
    Slot& slot = slots_[replica.local_index()];
    if (!slot.has_gradients && !may_be_written_.load(std::memory_order_relaxed))
      detail::refuse_gradients(
          replica.replica_id().index(), slot.has_computed,
          "Call forward, a loss and backward before each apply_gradients, or renew_gradients to apply them again");
    slot.has_gradients = false;
    return stores_gradients ? gradients : Span{};
  }

  /// Return the parameters, and the gradients of the last `backward`, in a compiled step: a traced array per parameter
  /// of the layout. Throw InvalidArgument without a `backward`.
  [[nodiscard]] auto traced_parameters(const InTrace auto& trace) { return Backend::parameters(trace, *this); }
  /// Returns a traced array with the gradient of each parameter, in a compiled step. Throws InvalidArgument without a
  /// `backward`.
  [[nodiscard]] auto traced_gradients(const InTrace auto& trace) { return Backend::gradients(trace, *this); }
  /// Adds to the gradient of a parameter, by its number in the layout. Throws like `traced_gradients`.
  template <class Array>
  void add_gradient(const InTrace auto& trace, std::size_t parameter, const Array& more) {
    Backend::add_gradient(trace, *this, parameter, more);
  }

  /// Lets an optimizer apply the gradients of this replica's last `backward` once more.
  void renew_gradients(const InReplica auto& replica) {
    Slot& slot = slots_[replica.local_index()];
    slot.has_gradients = slot.has_computed;
  }

  /// Returns a pointer that expires with the network.
  [[nodiscard]] std::weak_ptr<const void> lifetime() const noexcept { return lifetime_; }

  /// Throws ShapeMismatch unless a batch of this shape fits the network's input, except for trailing axes of extent 1.
  static void require_rows_of_input_shape(const Shape& batch) {
    detail::require_rows_of_shape(batch, Net::InputShape::shape());
  }

  /// Returns name, shape and offset of every parameter.
  [[nodiscard]] static constexpr std::span<const Parameter> layout() noexcept { return Net::parameters; }

  /// Returns a replica's copy of parameter `Which` (0 kernel or gamma, 1 bias or beta) of layer `Layer`, counted
  /// without the Input.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] TensorView<Element, Space> parameter(const InReplica auto& replica) const {
    require_parameter<Layer, Which>();
    return view_of(parameters_.component(replica), Net::parameters[Net::first_parameter[Layer] + Which]);
  }
  /// Returns a copy of a parameter outside replica functions, by number or by name, such as "dense_1/kernel". Throws
  /// InvalidArgument for an unknown name.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] Tensor<Element> parameter(const InCrossReplica auto& scope) const {
    require_parameter<Layer, Which>();
    return detail::part_of(parameters_, scope, Net::parameters[Net::first_parameter[Layer] + Which]);
  }
  /// Returns a parameter by its name in the layout, outside replica functions. Throws InvalidArgument for an unknown
  /// name.
  [[nodiscard]] Tensor<Element> parameter(const InCrossReplica auto& scope, std::string_view name) const {
    return detail::part_of(parameters_, scope, detail::parameter_named(layout(), name));
  }
  /// Assigns a parameter outside replica functions, in every copy, from a tensor of its shape, a contiguous range of as
  /// many numbers, or one number for all elements. Throws InvalidArgument for an unknown name, and ShapeMismatch.
  template <class Values>
  void assign_parameter(const InCrossReplica auto& scope, std::string_view name, const Values& values) {
    ParameterPart{parameters_, detail::parameter_named(layout(), name)}.restore(scope, values);
  }
  /// Returns a replica's gradient of parameter `Which` of layer `Layer`.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] TensorView<Element, Space> gradient(const InReplica auto& replica) const {
    static_assert(Which > 0 || stores<Layer>,
                  "the kernel gradient of this layer is computed by the kernel's owners when they apply it: use "
                  "nn::StoredGradients to read it");
    require_parameter<Layer, Which>();
    return view_of(gradients_.component(replica), Net::parameters[Net::first_parameter[Layer] + Which]);
  }

  /// Returns the layers' state, such as the moving statistics of BatchNormalization: an OnRead variable with
  /// aggregation Mean. `state_layout` returns names, shapes and offsets.
  [[nodiscard]] auto& state() noexcept requires(Net::state_count > 0) { return state_.variable(); }
  /// Returns names, shapes and offsets of the tensors in `state()`.
  [[nodiscard]] static constexpr std::span<const Parameter> state_layout() noexcept { return Net::state; }

  /// Returns a replica's view of state `Which` of layer `Layer`.
  template <std::size_t Layer, std::size_t Which>
  [[nodiscard]] auto state(const InReplica auto& replica) const {
    using Kept = detail::Layout<detail::Kept, typename Net::Bound>;
    return view_of(state_.read(replica), Kept::tensors[Kept::first[Layer] + Which]);
  }

  /// Tracks parameters and state, by their names. See Trackable.
  void track(auto& visit) {
    for (const Parameter& parameter : layout()) visit(parameter.name(), ParameterPart{parameters_, parameter});
    if constexpr (Net::state_count > 0) TrackedParts{state_.variable(), state_layout()}.track(visit);
  }

  /// Returns the network's output for a batch, and the destination of the loss's gradient. For evaluation and
  /// prediction give `nn::inference`: layers such as BatchNormalization then use stored statistics instead of the
  /// batch's.
  ///
  /// `x` has any number of rows, even none, of the input shape; trailing axes of extent 1 are ignored. It must not
  /// change until `backward`, or until gradients are applied if they are not stored. In training a collective call if a
  /// layer is synchronised, drops elements (Dropout), or has state of which replicas share one copy. Throws
  /// ShapeMismatch, OutOfMemory and the back end's errors.
  template <InReplica Replica, ForwardMode Mode = Training>
  [[nodiscard]] Outputs<Element, Space> forward(const Replica& replica, TensorView<const Element, Space> x, Mode = {}) {
    require_rows_of_input_shape(x.shape());
    const auto parameters = parameters_.copy(replica);  // first: throws for a replica of another strategy
    const auto before_use = [&] {
      if constexpr (RemoteStore<StoreOf<Replica>>)  // layer by layer: later layers may still be in transfer
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

  /// Returns the output as a traced array, in a compiled step, for a traced array `x`. Throws ShapeMismatch.
  template <class X, ForwardMode Mode = Training>
  [[nodiscard]] auto forward(const InTrace auto& trace, const X& x, Mode mode = {}) {
    static_assert(TracesNetworks<Backend>,
                  "the back end of this network computes on the host, but a compiled step runs on XLA devices: give "
                  "nn::Network the back end nn::Xla");
    if constexpr (TracesNetworks<Backend>) return Backend::forward(trace, *this, x, mode);
  }

  /// Report unsupported arguments.
  template <InCrossReplica Scope, class Input, class... Mode>
  [[nodiscard]] Outputs<Element, Space> forward(const Scope&, const Input&, Mode...) {
    static_assert(dist::detail::always_false<Input>,
                  "forward must be called in a replica function: use strategy.run, or a function that a "
                  "ClusterCoordinator schedules");
    return dist::detail::refused<Outputs<Element, Space>>();
  }
  /// Error message for an input that is not a tensor in the back end's memory.
  template <InReplica Replica, class Input, ForwardMode Mode = Training>
    requires(!std::convertible_to<const Input&, TensorView<const Element, Space>>)
  [[nodiscard]] Outputs<Element, Space> forward(const Replica&, const Input&, Mode = {}) {
    static_assert(dist::detail::always_false<Input> || Space::host_accessible,
                  "this network computes in device memory, and takes a dist::TensorView of its element type in that "
                  "memory: copy the batch into a strategy.buffer with replica.queue().copy");
    static_assert(dist::detail::always_false<Input> || !Space::host_accessible,
                  "forward takes a dist::Tensor or dist::TensorView of the network's element type (float by default): "
                  "for other memory, make a dist::TensorView<const float>{data, shape}");
    return dist::detail::refused<Outputs<Element, Space>>();
  }

  /// Computes the gradients of all parameters for the last `forward`, in its mode, and overwrites all stored gradients;
  /// with zeros for an empty batch. Starts from `loss`:
  ///
  /// - a tensor or view of the network's element type, in its memory: the gradient of the outputs, in their shape,
  ///   such as the input gradient of another network that took them;
  /// - anything else: the gradient that a loss wrote to `Outputs::gradient`. `loss` then only enforces the order.
  ///
  /// A collective call if a layer is synchronised. Throws InvalidArgument before the first `forward`, and ShapeMismatch
  /// for a gradient of another shape.
  template <class Loss>
  void backward(const InReplica auto& replica, const Loss& loss) {
    compute_gradients(replica, loss, GradientSources<true, false>{}, NoOp{});
  }
  /// Computes the gradients in a compiled step from a traced `loss` of its last `forward`, a number, or from a traced
  /// array with the gradient of the outputs. Throws like the `backward` of a replica.
  template <class Loss>
  void backward(const InTrace auto& trace, const Loss& loss) {
    Backend::backward(trace, *this, loss, GradientSources<true, false>{});
  }
  /// Returns the gradient of the input, [rows, ...]. With `nn::only_input_gradient`, it computes nothing else: the
  /// gradients of the parameters remain as they are, and an optimizer may take them as before. The view is valid until
  /// the replica's next `forward` or `backward`. Otherwise like the `backward` without sources.
  template <class Loss, bool Parameters>
  [[nodiscard]] TensorView<const Element, Space> backward(const InReplica auto& replica, const Loss& loss,
                                                          GradientSources<Parameters, true> sources) {
    require_input_gradient();
    return compute_gradients(replica, loss, sources, NoOp{});
  }
  /// Returns a traced array in a compiled step.
  template <class Loss, bool Parameters>
  [[nodiscard]] auto backward(const InTrace auto& trace, const Loss& loss, GradientSources<Parameters, true> sources) {
    require_input_gradient();
    return Backend::backward(trace, *this, loss, sources);
  }
  /// Computes the gradients and calls `when_ready(elements)` on this replica's thread when a part is final, before
  /// earlier layers are computed. `elements` is a range of the replica's component of `gradients()`. The parts are
  /// consecutive, from the last layer to the first, and cover all elements, also for an empty batch. They belong to
  /// this batch only: an update that accumulates batches applies their sum.
  template <class Loss, std::invocable<IndexRange> WhenReady>
  void backward(const InReplica auto& replica, const Loss& loss, WhenReady&& when_ready) {
    static_assert(stores_gradients || std::same_as<std::remove_cvref_t<WhenReady>, NoOp>,
                  "a network with nn::OwnerComputedGradients has no gradients in memory, so none become ready: use "
                  "nn::StoredGradients");
    compute_gradients(replica, loss, GradientSources<true, false>{}, when_ready);
  }

  /// Sums the gradients of the last `backward` over the replicas and applies them to the parameters by an
  /// ElementUpdate, like `ReplicaContext::reduce_and_apply`. Gradients that are not stored are computed for the owner's
  /// share of the kernel from all replicas' activations. A collective call. Throws InvalidArgument without such
  /// activations, that is, without a `backward` since the last `forward`.
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

  /// Computes `values[i] = update(i, values[i], given[i])` for the elements that this replica updates in
  /// `reduce_and_apply`, and copies all owners' results to every replica. A collective call.
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

  /// A replica's data for the owners of a kernel.
  struct LentLayer {
    kernels::DenseBatch<Element> batch;
    Element* kernel;
  };

  /// On separate cache lines, as different threads write them.
  struct alignas(cache_line) Slot {
    std::unique_ptr<Workspace> workspace;
    std::vector<kernels::DenseBatch<Element>> batches;  // of all replicas, kept for its memory
    bool has_computed = false;                          // a backward was called
    bool has_gradients = false;                         // of the last backward, not taken yet
  };

  template <std::size_t Layer>
  static constexpr bool stores = Storage::template stores<typename Net::template Layer<Layer>>;

  /// Returns one tensor of a replica's `all`.
  template <class Elements>
  [[nodiscard]] static auto view_of(const Elements& all, const Parameter& tensor) {
    return TensorView<std::remove_pointer_t<decltype(all.data())>, Space>{all.data() + tensor.offset, tensor.shape};
  }

  template <std::size_t Layer, std::size_t Which>
  static constexpr void require_parameter() {
    static_assert(Which < Net::template Layer<Layer>::parameters.size(),
                  "the layer has no parameter with this number: layers are numbered from 0 without the Input, and "
                  "some, such as Flatten, have no parameters; see layout()");
  }

  static constexpr void require_input_gradient() {
    static_assert(dist::detail::satisfied<(!Net::takes_ids)>,
                  "the input of this network is ids, which have no gradient: leave out nn::input_gradient, or make the "
                  "layers after the nn::Embedding another network, and use the input gradient of that network");
  }

  /// Returns the input gradient if it is one of the sources.
  template <class Loss, bool Parameters, bool Input, class WhenReady>
  auto compute_gradients(const InReplica auto& replica, const Loss& loss, GradientSources<Parameters, Input>,
                         WhenReady&& when_ready) {
    using ConstView = TensorView<const Element, Space>;
    using Sources = GradientSources<Parameters, Input>;
    constexpr bool is_gradient = std::convertible_to<const Loss&, ConstView>;
    static_assert(dist::detail::satisfied<(is_gradient || DifferentiableOutputs<Loss> || !Values<Loss>)>,
                  "backward starts from a loss, or from a dist::Tensor or dist::TensorView of the network's element "
                  "type in its memory, the gradient of its outputs: convert this gradient, or copy it there");
    const auto parameters = parameters_.component(replica);
    if constexpr (Parameters && RemoteStore<StoreOf<decltype(replica)>>)
      StoreOf<decltype(replica)>::renew(replica, parameters_);
    auto& workspace = slots_[replica.local_index()].workspace;
    if (workspace == nullptr)
      throw InvalidArgument("A network's backward was called before its forward",
                            concat("replica ", replica.replica_id().index(), " has not computed a batch yet"),
                            "Call forward and a loss first, in the same replica");
    if constexpr (is_gradient) {
      const ConstView given = loss;
      const TensorView<Element, Space> gradient = workspace->output_gradient();
      detail::require_gradient_of_shape(given.shape(), gradient.shape());
      if (given.data() != gradient.data()) replica.queue().copy(given.elements(), gradient.elements());
    }
    if constexpr (Net::uses_replica) {
      workspace->template backward<Sources>(parameters, gradients_.component(replica), replica, when_ready);
    } else {
      workspace->template backward<Sources>(parameters, gradients_.component(replica), NoReplica{}, when_ready);
    }
    Slot& slot = slots_[replica.local_index()];
    if constexpr (Parameters) slot.has_computed = slot.has_gradients = true;
    if constexpr (Input) return workspace->input_gradient();
  }

  /// Returns the global batch's rows before this replica's. A collective call.
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
                  "read, change or keep them");
  }

  void require_batches(const InReplica auto& replica) const {
    const auto& workspace = slots_[replica.local_index()].workspace;
    if (workspace != nullptr && workspace->has_batches()) return;
    throw InvalidArgument(
        "A network has no batch from which to compute gradients",
        concat("replica ", replica.replica_id().index(),
               " has not called backward since its last forward, and the network has nn::OwnerComputedGradients"),
        "Call forward, backward and apply_gradients in this order, or use nn::StoredGradients");
  }

  /// Calls `stored<range>()` and `owned<layer, offset>()` for the parts of the parameters in order: ranges with stored
  /// gradients, and kernels with owner-computed ones. Starts at element `Begin`, in layer `Layer` or before.
  template <std::size_t Layer = 0, std::size_t Begin = 0, class Stored, class Owned>
  static void for_each_part(const Stored& stored, const Owned& owned) {
    if constexpr (Layer == Net::layer_count) {
      stored.template operator()<IndexRange{Begin, padded_count}>();
    } else if constexpr (stores<Layer>) {
      for_each_part<Layer + 1, Begin>(stored, owned);
    } else {
      constexpr std::size_t kernel = Net::parameters[Net::first_parameter[Layer]].offset;
      constexpr std::size_t after = kernel + padded(Net::parameters[Net::first_parameter[Layer]].shape.elements());
      stored.template operator()<IndexRange{Begin, kernel}>();
      owned.template operator()<Layer, kernel>();
      for_each_part<Layer + 1, after>(stored, owned);
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

  /// Returns the inputs of layer `Layer` whose kernel rows this replica updates.
  template <std::size_t Layer>
  [[nodiscard]] static IndexRange owned_inputs(const InReplica auto& replica) {
    constexpr std::size_t granule = 16;  // inputs that the kernel computes together: shards end at block boundaries
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
