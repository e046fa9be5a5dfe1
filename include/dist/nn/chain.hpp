#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/nn/activation.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/kernels/dense_kernel_gradient.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/row.hpp>

namespace dist::nn {

/// The replica of passes through networks whose layers do not use it.
struct NoReplica {};

namespace detail {

template <class Operation>
concept EndsInActivation = requires {
  typename Operation::Activation;
};

/// The last step of a layer's operation, if it is an activation, else Linear.
template <class Operation>
struct ActivationOf {
  using Type = Linear;
};
template <EndsInActivation Operation>
struct ActivationOf<Operation> {
  using Type = typename Operation::Activation;
};

/// An operation whose `backward` has a form that writes no parameter gradient.
template <class Operation>
concept SkipsParameterGradients = requires {
  requires Operation::skips_parameter_gradients;
};

/// An operation that adds its parameter gradients to the old values.
template <class Operation>
concept AddsParameterGradients = requires {
  requires Operation::adds_parameter_gradients;
};

/// The operations of consecutive layers, and the memory between them, which grows to the largest batch. `Net` is a
/// Sequential. The caller owns the back end's state and queue.
///
/// Forward keeps all outputs. Backward needs two gradients at a time, so they alternate between two buffers, except for
/// layers whose kernel gradient is not stored: they keep their output's gradient until it is applied.
template <class Net, class Backend, class T, GradientStorage Storage = StoredGradients>
class Chain {
  using Where = typename Backend::Device::Space;
  using Queue = typename Backend::Device::Queue;
  using State = typename Backend::State;
  using Memory = LayerMemory<Backend, T>;
  template <class Element>
  using View = TensorView<Element, Where>;

  static constexpr std::size_t layers = Net::layer_count;
  /// True if the gradients of all parameters of a layer are stored.
  template <std::size_t Index>
  static constexpr bool stores = Storage::template stores<typename Net::template Layer<Index>>;

  /// The output of the first layers.
  struct Stage {
    Shape of_one_row;        // for one row
    std::size_t computed;    // number of layers that compute something; their outputs are numbered from 1
    std::size_t last;        // the last of these, or `layers`
    std::size_t not_stored;  // number of layers that do not store all gradients
    bool is_kept;            // true if layer `last` is one of these
  };
  /// A stage for each number of layers.
  static constexpr auto stages = []<std::size_t... Index>(std::index_sequence<Index...>) {
    std::array<Stage, layers + 1> all{Stage{Net::InputShape::shape().stacked(1), 0, layers, 0, false},
                                      Stage{Net::template Output<Index>::shape().stacked(1), 0, 0, 0, false}...};
    [[maybe_unused]] const auto add = [&](std::size_t layer, bool is_view, bool is_stored) {
      const Stage& before = all[layer];
      Stage& after = all[layer + 1];
      after.computed = before.computed + (is_view ? 0 : 1);
      after.last = is_view ? before.last : layer;
      after.not_stored = before.not_stored + (is_stored ? 0 : 1);
      after.is_kept = is_view ? before.is_kept : !is_stored;
    };
    (add(Index, Net::template Layer<Index>::is_view, stores<Index>), ...);
    return all;
  }
  (std::make_index_sequence<layers>{});

 public:
  /// True if no layer computes anything.
  static constexpr bool is_identity = stages[layers].computed == 0;

  /// Returns the output for `x`, a batch of the input shape. `x` and `parameters`, which are the whole network's, must
  /// not change until `backward`. `pass` is a ForwardPass if a layer uses the replica. `before_use(elements)` is called
  /// before each layer's parameters are read, in order.
  template <class Pass, class BeforeUse = NoOp>
  [[nodiscard]] Outputs<T, Where> forward(const Queue& queue, State& state, const T* parameters, View<const T> x,
                                          const Pass& pass, const BeforeUse& before_use = {}) {
    x_ = {x.data(), stages[0].of_one_row.with_rows(x.rows())};
    reserve(queue, rows());
    for (const ForwardEntry& layer : forward_entries<Pass>) {
      if (!takes_part(layer)) continue;
      if (layer.elements.size() > 0 && !layer.has_blocks) before_use(layer.elements);
      (this->*layer.run)(state, parameters, &pass, before_use);
    }
    return {output(layers), output_gradient()};
  }

  /// Overwrites the gradients of all parameters, unless `ParameterGradients` is false, and with `InputGradient` of the
  /// input, from the output gradient that the loss wrote. `replica` is the replica's context if a layer uses it.
  /// `when_ready(elements)` is called when the gradients of one or several layers are final, from the last to the
  /// first.
  template <bool InputGradient, bool ParameterGradients = true, class Replica, class WhenReady>
  void backward(const Queue& queue, State& state, const T* parameters, T* gradients, const Replica& replica,
                WhenReady&& when_ready) {
    static_assert(InputGradient || ParameterGradients);
    if constexpr (InputGradient) reserve_input_gradient(queue);
    reserve_scratch<ParameterGradients>(queue);
    if (rows() == 0) {
      if constexpr (ParameterGradients && Net::padded_count > 0)
        queue.fill(SpanIn<T, Where>{gradients, Net::padded_count}, T{0});
      if constexpr (!Net::uses_replica) return static_cast<void>(when_ready(IndexRange{0, Net::padded_count}));
    }
    for (std::size_t layer = layers; layer-- > 0;) {
      const BackwardEntry& entry = backward_entries<InputGradient, ParameterGradients, Replica>[layer];
      const bool runs = takes_part(entry);
      if (runs) (this->*entry.run)(state, parameters, gradients, &replica, when_ready);
      if (entry.elements.size() > 0 && !(runs && entry.has_blocks)) when_ready(entry.elements);
    }
  }

  /// Returns the output's gradient, for a loss of the last `forward` to write.
  [[nodiscard]] View<T> output_gradient() { return output_gradient(layers); }
  /// Returns the input's gradient, after a `backward` with `InputGradient`.
  [[nodiscard]] View<const T> input_gradient() { return layer_input_gradient(0); }

  /// Returns the factors of a kernel gradient that is not stored, until the next `forward`.
  template <std::size_t Index>
  [[nodiscard]] kernels::DenseBatch<T> dense_batch() {
    static_assert(!stores<Index>);
    const View<const T> x = output(Index);
    return {x.data(), output_gradient(Index + 1).data(), x.size() / Net::template Layer<Index>::Geometry::inputs};
  }
  [[nodiscard]] std::size_t rows() const noexcept { return x_.rows(); }

  /// Exchanges the memory that only `backward` uses with another chain. The output's gradient moves with it.
  void swap_scratch(Chain& other) {
    std::swap(gradients_, other.gradients_);
    std::swap(gradient_rows_, other.gradient_rows_);
    std::swap(input_gradient_, other.input_gradient_);
    std::swap(input_gradient_rows_, other.input_gradient_rows_);
    std::swap(scratch_, other.scratch_);
    std::swap(scratch_elements_, other.scratch_elements_);
    [[maybe_unused]] const auto swap_of_layer = [](auto& operation, auto& of_other) {
      if constexpr (SharesScratch<std::remove_cvref_t<decltype(operation)>>) operation.swap_scratch(of_other);
    };
    [&]<std::size_t... Index>(std::index_sequence<Index...>) {
      (swap_of_layer(std::get<Index>(operations_), std::get<Index>(other.operations_)), ...);
    }
    (std::make_index_sequence<layers>{});
  }

 private:
  struct NoOperation {};
  template <class Layer>
  struct OperationOf {
    using Type = NoOperation;
  };
  template <class Layer>
    requires(!Layer::is_view)
  struct OperationOf<Layer> {
    using Type = typename Layer::template Operation<Backend, T>;
  };
  template <std::size_t... Index>
  static auto operations_of(std::index_sequence<Index...>)
      -> std::tuple<typename OperationOf<typename Net::template Layer<Index>>::Type..., NoOperation>;
  using Operations = decltype(operations_of(std::make_index_sequence<layers>{}));

  /// A layer's operation; an empty one for index `layers`.
  template <std::size_t Index>
  using OperationAt = std::tuple_element_t<Index, Operations>;

  /// The first layer with parameters: earlier layers need no gradients.
  static constexpr std::size_t first_trained = [] {
    std::size_t first = 0;
    while (first < layers && Net::first_parameter[first + 1] == 0) ++first;
    return first;
  }();

  /// The first layer after `Index` that computes something; `layers` if none does.
  template <std::size_t Index>
  static constexpr std::size_t next_computed = [] {
    std::size_t next = Index + 1;
    while (next < layers && stages[next + 1].last != next) ++next;
    return next;
  }();

  template <std::size_t Index>
  static constexpr bool ends_in_activation = detail::EndsInActivation<OperationAt<Index>>;
  /// The activation before a layer, or Linear.
  template <std::size_t Index>
  using ActivationBefore = typename detail::ActivationOf<OperationAt<stages[Index].last>>::Type;
  /// True if a layer also applies the previous activation's gradient to dx.
  template <std::size_t Index>
  static constexpr bool fuses = [] {
    if constexpr (ends_in_activation<Index> && Index > first_trained)
      return OperationAt<Index>::template fuses<ActivationBefore<Index>>;
    return false;
  }();

  /// Returns the output of the first `count` layers, the batch itself if they only change its shape.
  [[nodiscard]] View<const T> output(std::size_t count) {
    const Stage& stage = stages[count];
    const T* const data = stage.computed == 0 ? x_.data() : outputs_[stage.computed].data();
    return {data, stage.of_one_row.with_rows(rows())};
  }
  [[nodiscard]] View<T> output_gradient(std::size_t count) {
    const Stage& stage = stages[count];
    Memory& memory = stage.is_kept ? kept_gradients_[stage.not_stored] : gradients_[stage.computed % 2];
    return {memory.data(), stage.of_one_row.with_rows(rows())};
  }
  /// Returns the destination of the input gradient of layer `index`.
  [[nodiscard]] View<T> layer_input_gradient(std::size_t index) {
    if (stages[index].computed > 0 || is_identity) return output_gradient(index);
    return {input_gradient_.data(), stages[index].of_one_row.with_rows(rows())};
  }

  void reserve(const Queue& queue, std::size_t rows) {
    if (rows > reserved_rows_) {
      for (std::size_t layer = 0; layer != layers; ++layer) {
        const Stage& stage = stages[layer + 1];
        const std::size_t elements = rows * stage.of_one_row.elements();
        if (stage.last == layer) outputs_[stage.computed] = make_layer_memory<Backend, T>(queue, elements);
        if (stage.last == layer && stage.is_kept)
          kept_gradients_[stage.not_stored] = make_layer_memory<Backend, T>(queue, elements);
      }
      reserved_rows_ = rows;
    }
    if (rows > gradient_rows_) {
      std::array<std::size_t, 2> elements{is_identity ? Net::InputShape::elements : 0};  // of a row
      for (std::size_t layer = 0; layer != layers; ++layer) {
        std::size_t& most = elements[stages[layer + 1].computed % 2];
        most = std::max(most, stages[layer + 1].of_one_row.elements());
      }
      for (std::size_t side = 0; side < 2; ++side)
        gradients_[side] = make_layer_memory<Backend, T>(queue, rows * elements[side]);
      gradient_rows_ = rows;
    }
  }
  void reserve_input_gradient(const Queue& queue) {
    if (is_identity || rows() <= input_gradient_rows_) return;
    input_gradient_ = make_layer_memory<Backend, T>(queue, rows() * Net::InputShape::elements);
    input_gradient_rows_ = rows();
  }

  /// True if a layer uses parameters of the layer or of an earlier layer.
  template <std::size_t Index>
  static constexpr bool has_parameters = Net::template used_parameters<Index>.size() > 0;
  /// True if a layer's `backward` has a form that writes no parameter gradient.
  template <std::size_t Index>
  static constexpr bool skips_parameter_gradients =
      !has_parameters<Index> || SkipsParameterGradients<OperationAt<Index>>;

  /// Returns the range of some parameters in the network's.
  [[nodiscard]] static constexpr IndexRange elements_in([[maybe_unused]] IndexRange numbers) {
    if constexpr (Net::parameters.size() == 0) {
      return IndexRange{0, 0};
    } else {
      const auto start = [](std::size_t parameter) {
        return parameter < Net::parameters.size() ? Net::parameters[parameter].offset : Net::padded_count;
      };
      return IndexRange{start(numbers.begin), start(numbers.end)};
    }
  }
  /// True if a later layer uses the same parameters. `backward` visits the later layer first, which overwrites the
  /// gradients, and this layer adds to them.
  template <std::size_t Index>
  static constexpr bool adds_gradients = [] {
    if constexpr (Net::has_ties && has_parameters<Index>) {
      return []<std::size_t... Later>(std::index_sequence<Later...>) {
        return (
            (IsTied<typename Net::template Layer<Index + 1 + Later>> &&
             Net::template used_parameters<Index + 1 + Later>.begin == Net::template used_parameters<Index>.begin) ||
            ...);
      }
      (std::make_index_sequence<layers - Index - 1>{});
    }
    return false;
  }();
  /// True if a layer writes gradients to scratch memory, because they are added to others, or the caller does not want
  /// them.
  template <std::size_t Index, bool ParameterGradients>
  static constexpr bool uses_scratch =
      ParameterGradients ? adds_gradients<Index> && !AddsParameterGradients<OperationAt<Index>>
                         : !skips_parameter_gradients<Index>;

  template <bool ParameterGradients>
  void reserve_scratch(const Queue& queue) {
    constexpr std::size_t most = []<std::size_t... Index>(std::index_sequence<Index...>) {
      std::size_t largest = 0;
      ((largest = std::max(largest, uses_scratch<Index, ParameterGradients>
                                        ? elements_in(Net::template used_parameters<Index>).size()
                                        : 0)),
       ...);
      return largest;
    }
    (std::make_index_sequence<layers>{});
    if constexpr (most > 0) {
      if (most <= scratch_elements_) return;
      scratch_ = make_layer_memory<Backend, T>(queue, most);
      scratch_elements_ = most;
    }
  }
  /// Returns the destination of a layer's parameter gradients.
  template <std::size_t Index, bool ParameterGradients>
  [[nodiscard]] auto layer_gradients(T* gradients) {
    auto views = Net::template layer_parameters<Index, Where>(gradients);
    if constexpr (uses_scratch<Index, ParameterGradients>) {
      const T* const first = views[0].data();
      for (View<T>& view : views) view = {scratch_.data() + (view.data() - first), view.shape()};
    }
    return views;
  }

  /// The caller's `before_use` or `when_ready`. Layers with blocks call it for each block.
  using OnElements = dist::detail::FunctionRef<void(IndexRange)>;

  /// A layer's parameters, and the function that computes it, or null. The function takes the pass or the replica as a
  /// pointer, so layers that do not use the replica are compiled only once.
  template <class Run>
  struct LayerEntry {
    IndexRange elements;
    bool uses_replica;
    bool has_blocks;
    Run run;
  };
  using ForwardEntry = LayerEntry<void (Chain::*)(State&, const T*, const void*, OnElements)>;
  using BackwardEntry = LayerEntry<void (Chain::*)(State&, const T*, T*, const void*, OnElements)>;

  /// True if a layer computes this batch. An empty batch is computed only by layers that use the replica.
  [[nodiscard]] bool takes_part(const auto& layer) const {
    return layer.run != nullptr && (layer.uses_replica || rows() > 0);
  }
  template <std::size_t Index>
  static constexpr bool uses_replica = detail::uses_replica<typename Net::template Layer<Index>>;
  template <std::size_t Index>
  static constexpr bool has_blocks = HasBlocks<typename Net::template Layer<Index>>;

  template <std::size_t Index, class Pass>
  [[nodiscard]] static constexpr ForwardEntry forward_entry() {
    ForwardEntry entry{elements_of<Index>, uses_replica<Index>, has_blocks<Index>, nullptr};
    if constexpr (stages[Index + 1].last == Index)
      entry.run = &Chain::template forward_one<Index, std::conditional_t<uses_replica<Index>, Pass, NoReplica>>;
    return entry;
  }
  template <class Pass>
  static constexpr auto forward_entries = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return std::array<ForwardEntry, layers>{forward_entry<Index, Pass>()...};
  }
  (std::make_index_sequence<layers>{});
  template <std::size_t Index, class Pass>
  void forward_one(State& state, const T* parameters, [[maybe_unused]] const void* pass,
                   [[maybe_unused]] OnElements before_use) {
    const View<T> y{outputs_[stages[Index + 1].computed].data(), stages[Index + 1].of_one_row.with_rows(rows())};
    auto& operation = std::get<Index>(operations_);
    const auto layer_parameters = Net::template layer_parameters<Index, Where>(parameters);
    const auto run = [&](const auto&... call) {
      if constexpr (has_blocks<Index>) {
        operation.forward(call..., state, output(Index), layer_parameters, y, in_layer<Index>(before_use));
      } else {
        operation.forward(call..., state, output(Index), layer_parameters, y);
      }
    };
    if constexpr (uses_replica<Index>) {
      run(static_cast<const Pass*>(pass)->template layer_call<Net, Index>());
    } else {
      run();
    }
  }
  /// Returns a function for ranges of the elements of one layer.
  template <std::size_t Index>
  [[nodiscard]] static auto in_layer(OnElements call) {
    return [call](IndexRange elements) {
      call({elements_of<Index>.begin + elements.begin, elements_of<Index>.begin + elements.end});
    };
  }

  /// The range of a layer's own parameters.
  template <std::size_t Index>
  static constexpr IndexRange elements_of = elements_in(IndexRange{Net::first_parameter[Index],
                                                                   Net::first_parameter[Index + 1]});

  template <std::size_t Index, bool InputGradient, bool ParameterGradients, class Replica>
  [[nodiscard]] static constexpr BackwardEntry backward_entry() {
    BackwardEntry entry{elements_of<Index>, uses_replica<Index>, has_blocks<Index>, nullptr};
    // A layer without parameters has one function for both.
    constexpr bool parameter_gradients = ParameterGradients || !has_parameters<Index>;
    if constexpr (stages[Index + 1].last == Index && (InputGradient || Index >= first_trained))
      entry.run = &Chain::template backward_one<Index, InputGradient, parameter_gradients,
                                                std::conditional_t<uses_replica<Index>, Replica, NoReplica>>;
    return entry;
  }
  template <bool InputGradient, bool ParameterGradients, class Replica>
  static constexpr auto backward_entries = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return std::array<BackwardEntry, layers>{backward_entry<Index, InputGradient, ParameterGradients, Replica>()...};
  }
  (std::make_index_sequence<layers>{});
  template <std::size_t Index, bool InputGradient, bool ParameterGradients, class Replica>
  void backward_one(State& state, const T* parameters, T* gradients, [[maybe_unused]] const void* replica,
                    [[maybe_unused]] OnElements when_ready) {
    constexpr bool writes_dx = InputGradient || Index > first_trained;
    const View<T> dx = writes_dx ? layer_input_gradient(Index) : View<T>{};
    auto& operation = std::get<Index>(operations_);
    const auto layer_parameters = Net::template layer_parameters<Index, Where>(parameters);
    const auto of_parameters = layer_gradients<Index, ParameterGradients>(gradients);
    if constexpr (ParameterGradients && AddsParameterGradients<OperationAt<Index>> && !adds_gradients<Index>)
      for (const View<T>& each : of_parameters) queue_of<Backend>(state).fill(each.elements(), T{0});
    [[maybe_unused]] const auto run = [&](const auto&... context) {
      if constexpr (has_blocks<Index>) {
        operation.template backward<writes_dx, ParameterGradients>(context..., state, output(Index), layer_parameters,
                                                                   output(Index + 1), output_gradient(Index + 1),
                                                                   of_parameters, dx, in_layer<Index>(when_ready));
      } else if constexpr (!ParameterGradients && skips_parameter_gradients<Index>) {
        operation.template backward<writes_dx, false>(context..., state, output(Index), layer_parameters,
                                                      output(Index + 1), output_gradient(Index + 1), of_parameters, dx);
      } else {
        operation.template backward<writes_dx>(context..., state, output(Index), layer_parameters, output(Index + 1),
                                               output_gradient(Index + 1), of_parameters, dx);
      }
    };
    if constexpr (uses_replica<Index>) {
      run(*static_cast<const Replica*>(replica));
    } else if constexpr (ends_in_activation<Index>) {
      using Pass = BackwardPass<writes_dx, stores<Index> && ParameterGradients, fuses<next_computed<Index>>,
                                std::conditional_t<fuses<Index>, ActivationBefore<Index>, Linear>, ParameterGradients>;
      operation.template fused_backward<Pass>(state, output(Index), layer_parameters, output(Index + 1),
                                              output_gradient(Index + 1), of_parameters, dx);
    } else {
      run();
    }
    if constexpr (ParameterGradients && uses_scratch<Index, true>) {
      const auto sums = Net::template layer_parameters<Index, Where>(gradients);
      for (std::size_t which = 0; which < sums.size(); ++which)
        queue_of<Backend>(state).for_each({0, sums[which].size()},
                                          AddTo<T>{of_parameters[which].data(), sums[which].data()});
    }
  }

  Operations operations_;
  View<const T> x_;
  std::array<Memory, stages[layers].computed + 1> outputs_;  // the first is unused: the output of no layer is x
  std::array<Memory, 2> gradients_;
  std::array<Memory, stages[layers].not_stored + 1> kept_gradients_;
  Memory input_gradient_;
  Memory scratch_;
  std::size_t reserved_rows_ = 0;
  std::size_t gradient_rows_ = 0;
  std::size_t input_gradient_rows_ = 0;
  std::size_t scratch_elements_ = 0;
};

}  // namespace detail

/// One replica's state of a network: operations, the memory between them, and the back end's state. See Chain.
template <class Net, class Backend, class T, GradientStorage Storage = StoredGradients>
class Workspace {
  using Where = typename Backend::Device::Space;
  using Queue = typename Backend::Device::Queue;

 public:
  /// Creates a workspace for back ends whose replicas need no queue.
  Workspace() requires(Where::host_accessible) : Workspace(Queue{}) {}
  /// Creates a workspace for the replica that owns the queue.
  explicit Workspace(const Queue& queue) : queue_(queue), state_(make_state(queue)) {}

  /// Returns the network's output for `x`, a batch of its input shape. `x` and `parameters` must not change until
  /// `backward`, and `x` not until gradients are applied if they are not stored. `pass` is a ForwardPass if a layer
  /// uses the replica. `before_use(elements)` is called before a layer's parameters are read.
  template <class Pass = NoReplica, class BeforeUse = NoOp>
  [[nodiscard]] Outputs<T, Where> forward(SpanIn<const T, Where> parameters, TensorView<const T, Where> x,
                                          const Pass& pass = {}, const BeforeUse& before_use = {}) {
    has_batches_ = false;
    [[maybe_unused]] const auto entered = state_.enter();
    return chain_.forward(queue_, state_, parameters.data(), x, pass, before_use);
  }

  /// Overwrites the gradients of the `Sources`, a GradientSources, from the output gradient that the loss wrote.
  /// `replica` is the replica's context if a layer uses it. `when_ready(elements)` is called when the gradients of one
  /// or several layers are final, from the last to the first.
  template <class Sources = GradientSources<true, false>, class Replica = NoReplica, class WhenReady = NoOp>
  void backward(SpanIn<const T, Where> parameters, SpanIn<T, Where> gradients, const Replica& replica = {},
                WhenReady&& when_ready = {}) {
    has_batches_ = false;
    {
      [[maybe_unused]] const auto entered = state_.enter();
      chain_.template backward<Sources::input, Sources::parameters>(queue_, state_, parameters.data(), gradients.data(),
                                                                    replica, when_ready);
    }
    has_batches_ = Sources::parameters;
  }

  /// Returns the output's gradient, for a loss of the last `forward` to write.
  [[nodiscard]] TensorView<T, Where> output_gradient() { return chain_.output_gradient(); }
  /// Returns the input's gradient of the last `backward`, if it was one of its sources.
  [[nodiscard]] TensorView<const T, Where> input_gradient() { return chain_.input_gradient(); }

  /// Returns the factors of a kernel gradient that is not stored, until the next `forward`.
  template <std::size_t Index>
  [[nodiscard]] kernels::DenseBatch<T> dense_batch() {
    return chain_.template dense_batch<Index>();
  }
  /// True from `backward` until the next `forward`, while the factors of kernel gradients are available.
  [[nodiscard]] bool has_batches() const noexcept { return has_batches_; }

 private:
  using State = typename Backend::State;

  [[nodiscard]] static State make_state(const Queue& queue) {
    if constexpr (std::constructible_from<State, const Queue&>)
      return State(queue);
    else
      return {};
  }

  [[no_unique_address]] Queue queue_;
  State state_;
  detail::Chain<Net, Backend, T, Storage> chain_;
  bool has_batches_ = false;
};

}  // namespace dist::nn
