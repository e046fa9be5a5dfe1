/// Modules of libtorch on a strategy. The only header that includes libtorch. Works with libtorch 1.13 and newer.
#pragma once

#if !__has_include(<torch/nn/module.h>)
#error "<torch/nn/module.h> of libtorch was not found: install libtorch-dev, and link dist::torch"
#endif

// First: other headers of libtorch 1.13 use vectors of a type that is complete only here, which clang++ does not take.
#include <ATen/core/ivalue.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/context/cross_replica_context.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/function_ref.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/random.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/forward_mode.hpp>
#include <dist/nn/losses/values.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

namespace detail {

/// What refers to a module of libtorch: a module holder such as torch::nn::Linear, or a std::shared_ptr to a module.
template <class M>
concept HoldsTorchModule = requires(M& made) {
  { *made } -> std::convertible_to<torch::nn::Module&>;
};
template <class M>
concept TakesTorchTensor = requires(M& made, const torch::Tensor& x) {
  { made->forward(x) } -> std::convertible_to<torch::Tensor>;
};

/// Tensors of a module and where they lie in the variable that holds all of their kind, in the order of the module.
class TorchTensors {
 public:
  void add(std::string name, const torch::Tensor& tensor) {
    const auto is_same = [&](const torch::Tensor& other) { return other.is_same(tensor); };
    if (std::any_of(tensors_.begin(), tensors_.end(), is_same))
      return;  // shared within the module: under its first name
    names_.push_back(std::move(name));
    tensors_.push_back(tensor);
    shapes_.push_back(shape_of(tensor));
  }

  [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<torch::Tensor>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] bool is_like(const TorchTensors& other) const {
    return names_ == other.names_ && shapes_ == other.shapes_;
  }

  /// Their places, which refer to the names here.
  [[nodiscard]] std::vector<nn::Parameter> layout() const {
    std::vector<nn::Parameter> places;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string_view name = names_[i];
      const std::size_t dot = name.rfind('.');
      const std::string_view owner = dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
      places.push_back({.layer = owner,
                        .ordinal = 0,
                        .kind = dot == std::string_view::npos ? name : name.substr(dot + 1),
                        .shape = shapes_[i],
                        .offset = offset,
                        .separator = '.'});
      offset += nn::padded(shapes_[i].elements());
    }
    return places;
  }

  [[nodiscard]] static Shape shape_of(const torch::Tensor& tensor) {
    std::vector<std::size_t> extents;
    for (const std::int64_t extent : tensor.sizes()) extents.push_back(static_cast<std::size_t>(extent));
    return Shape{std::span<const std::size_t>{extents}};
  }

 private:
  std::vector<std::string> names_;
  std::vector<torch::Tensor> tensors_;
  std::vector<Shape> shapes_;
};

/// What torch_module returns after it has said why there is no module.
struct NoTorchModule {};

/// The elements that tensors of one layout need, padding included.
[[nodiscard]] inline std::size_t elements_of(std::span<const nn::Parameter> layout) {
  return layout.empty() ? 0 : layout.back().offset + nn::padded(layout.back().shape.elements());
}

/// What a module has: what it learns, numbers that it keeps, and counts that it keeps.
struct TorchParts {
  TorchTensors learned, kept, counted;

  /// Throws InvalidArgument for parameters that are not numbers of type float in the host's memory, and where there is
  /// nothing to learn.
  explicit TorchParts(const torch::nn::Module& module) {
    for (const auto& named : module.named_parameters()) {
      require_float_on_host(named.key(), named.value());
      (named.value().requires_grad() ? learned : kept).add(named.key(), named.value());
    }
    for (const auto& named : module.named_buffers()) {
      const torch::Tensor& buffer = named.value();
      if (!buffer.defined() || !buffer.device().is_cpu()) continue;
      if (buffer.scalar_type() == torch::kFloat32) kept.add(named.key(), buffer);
      if (buffer.scalar_type() == torch::kInt64) counted.add(named.key(), buffer);
    }
    if (learned.size() == 0)
      throw InvalidArgument(text("Module ", module.name(), " of libtorch has nothing to train"),
                            "it has no parameter that requires a gradient", "Give torch_module one that has");
  }

 private:
  static void require_float_on_host(const std::string& name, const torch::Tensor& parameter) {
    if (parameter.scalar_type() == torch::kFloat32 && parameter.device().is_cpu()) return;
    throw InvalidArgument(text("Parameter '", name, "' of a module of libtorch cannot lie in a strategy's memory"),
                          text("it has elements of type ", c10::toString(parameter.scalar_type()), " on ",
                               parameter.device().str(), ", and a torch_module has floats on the CPU"),
                          "Leave the module's type and device as they are made, or call module->to(torch::kFloat32)");
  }
};

/// Seeds libtorch's generator by its own seed and the number of this process, in all processes but the first: where all have
/// the same seed, they would have the same dropout masks.
inline void separate_random_numbers(std::size_t process) {
  if (process == 0) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock{generator.mutex()};
  generator.set_current_seed(RandomStream{generator.current_seed(), process}.bits(0));
}

/// The sizes that libtorch calls a shape.
[[nodiscard]] inline std::vector<std::int64_t> torch_sizes(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const std::size_t extent : shape.extents()) sizes.push_back(static_cast<std::int64_t>(extent));
  return sizes;
}

}  // namespace detail

/// A tensor of libtorch over the elements of a view in the host's memory, which is not copied and must outlive it.
template <class T>
[[nodiscard]] torch::Tensor torch_tensor(TensorView<T> view) {
  using Number = std::remove_const_t<T>;
  return torch::from_blob(const_cast<Number*>(view.data()), detail::torch_sizes(view.shape()),
                          torch::TensorOptions{}.dtype(c10::CppTypeToScalarType<Number>()));
}

/// A module of libtorch with one copy for each replica, whose parameters and gradients are tensors over the strategy's
/// memory. So an optimizer reduces and applies them where they are:
///
///     auto net = dist::torch_module(strategy, [] { return Net{}; });  // Net is a torch::nn::ModuleHolder
///     nn::Optimizer optimizer{strategy, net, nn::Adam{}};
///     strategy.run([&](auto& replica, const auto& batch) {
///       auto loss = torch::nll_loss(net.on(replica)->forward(dist::torch_tensor(batch.x)), …) / replicas;
///       net.backward(replica, loss);             // the gradients of this replica's part of the batch
///       optimizer.apply_gradients(replica);      // their sum over the replicas, in one pass with the update
///     }, batch);
///
/// It is a network for nn::Optimizer, nn::Model and nn::OverlappedAllReduce: a module that makes one tensor of one takes part
/// in `forward` and `backward` with the library's losses.
///
/// - Parameters are those that require a gradient. They begin, on all replicas of all processes, with what the first
///   module of the first process has. They are named as in libtorch, "conv1.weight", with the offsets of `layout()`.
/// - What the module keeps, buffers of type float such as running statistics and parameters that require no gradient,
///   each replica changes for itself; outside replica functions and in files it is the mean of the replicas' (an OnRead
///   variable). Counts, buffers of 64-bit integers, are those of replica 0 there. Other buffers stay as make_module makes
///   them.
/// - Where a process has several replicas, each computes with one thread: `on` and `forward` call at::set_num_threads(1),
///   which holds for the process, its calling thread included.
/// - libtorch allocates outputs and gradients anew in each step. glibc gives large ones back to the system at once, which the
///   threads of a process do one after the other: run the program with MALLOC_TRIM_THRESHOLD_=1000000000 and
///   MALLOC_MMAP_THRESHOLD_=1000000000 in the environment, which keep them.
/// - Random numbers of modules, such as dropout masks, are libtorch's, from one generator of the process that its replicas use
///   in any order. Once modules are made, the constructor seeds it by its seed and the number of the process, so that equal
///   calls of torch::manual_seed before give each process other masks. A later torch::manual_seed must differ by process.
/// - A copy of a module must not be used after this object has ended: its tensors lie in the memory of the variables.
template <detail::HoldsTorchModule Made>
class TorchModule {
 public:
  using Element = float;
  using Parameters = DistributedVariable<float, OnWrite, None>;
  using Gradients = ReplicaBuffer<float>;
  using Kept = DistributedVariable<float, OnRead, Mean>;
  using Counted = DistributedVariable<std::int64_t, OnRead, OnlyFirstReplica>;

  static constexpr bool stores_gradients = true;

  /// Calls `make()` for each replica of this process. A collective call of the processes, outside replica functions.
  /// Throws InvalidArgument for parameters that are not floats on the CPU, for a module without any, and where `make` does
  /// not make the same module every time; OutOfMemory, and what libtorch throws.
  template <Strategy S, std::invocable Make>
  TorchModule(S& strategy, Make& make)
      : locals_(made_by(make, strategy.num_local_replicas())),
        learned_(locals_[0].parts.learned.layout()),
        kept_layout_(locals_[0].parts.kept.layout()),
        counted_layout_(locals_[0].parts.counted.layout()),
        parameters_(variable_of<OnWrite, None, float>(strategy, locals_[0].parts.learned, learned_, "parameters")),
        gradients_(strategy.template buffer<float>(Shape{detail::elements_of(learned_)}, "gradients")) {
    const auto scope = strategy.scope();
    if (!kept_layout_.empty())
      kept_.emplace(variable_of<OnRead, Mean, float>(strategy, locals_[0].parts.kept, kept_layout_, "state"));
    if (!counted_layout_.empty())
      counted_.emplace(variable_of<OnRead, OnlyFirstReplica, std::int64_t>(strategy, locals_[0].parts.counted,
                                                                           counted_layout_, "counts"));
    for (std::size_t replica = 0; replica < locals_.size(); ++replica) {
      Local& local = locals_[replica];
      lay(local.parts.learned, learned_, parameters_.component(scope, replica).data());
      if (kept_) lay(local.parts.kept, kept_layout_, kept_->component(scope, replica).data());
      if (counted_) lay(local.parts.counted, counted_layout_, counted_->component(scope, replica).data());
      watch(local, gradients_.component(scope, replica).data());
    }
    detail::separate_random_numbers(strategy.workers().rank());
  }
  TorchModule(const TorchModule&) = delete;
  TorchModule& operator=(const TorchModule&) = delete;

  [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
  [[nodiscard]] Gradients& gradients() noexcept { return gradients_; }
  [[nodiscard]] const Gradients& gradients() const noexcept { return gradients_; }
  /// Name, shape and offset of every parameter in both.
  [[nodiscard]] std::span<const nn::Parameter> layout() const noexcept { return learned_; }

  /// The calling replica's module, with all that its type can do. Throws WrongStrategy.
  [[nodiscard]] Made& on(const InReplica auto& replica) { return local_of(replica).module; }
  /// That of a replica of this process, outside replica functions.
  [[nodiscard]] Made& on(const InCrossReplica auto& scope, std::size_t local_replica) {
    static_cast<void>(parameters_.component(scope, local_replica));
    return locals_[local_replica].module;
  }

  /// A parameter by its name in `layout()`, outside replica functions, as a tensor of its own. Throws InvalidArgument for a
  /// name that no parameter has.
  [[nodiscard]] Tensor<float> parameter(const InCrossReplica auto& scope, std::string_view name) const {
    return nn::detail::part_of(parameters_, scope, nn::detail::parameter_named(learned_, name));
  }
  /// Writes it, in every copy. Throws as nn::Network::assign_parameter does.
  template <class Values>
  void assign_parameter(const InCrossReplica auto& scope, std::string_view name, const Values& values) {
    nn::ParameterPart{parameters_, nn::detail::parameter_named(learned_, name)}.restore(scope, values);
  }

  /// What the module makes of a batch, a tensor or a view of one, and where a loss writes its gradient. In inference the
  /// module is in its mode of evaluation. `x` must stay as it is until `backward`. Without rows the module is not called.
  /// Throws InvalidArgument for a result that is not of type float, and what libtorch throws.
  template <InReplica Replica, nn::Values X, nn::ForwardMode Mode = nn::Training>
  [[nodiscard]] nn::Outputs<float> forward(const Replica& replica, const X& x, Mode = {}) {
    static_assert(
        detail::TakesTorchTensor<Made>,
        "forward of a torch_module is for modules whose forward takes one tensor and returns one: call "
        "net.on(replica)->forward(…) with what it takes, and net.backward(replica, loss) with a loss of libtorch");
    constexpr bool trains = std::same_as<Mode, nn::Training>;
    Local& local = local_of(replica);
    const auto batch = nn::values_of(x);
    if (batch.rows() == 0) {
      local.output = torch::empty(detail::torch_sizes(local.row.stacked(0)));
    } else {
      if (local.module->is_training() != trains) local.module->train(trains);
      const torch::AutoGradMode remembers{trains};
      local.output = torch::Tensor{local.module->forward(torch_tensor(batch))}.contiguous();
      if (local.output.scalar_type() != torch::kFloat32 || local.output.dim() == 0)
        throw InvalidArgument("A module of libtorch made something that no loss of dist takes",
                              text("elements of type ", c10::toString(local.output.scalar_type()), " in ",
                                   local.output.dim(), " dimensions"),
                              "Let its forward return a tensor of floats with one row for each example");
      local.row = detail::TorchTensors::shape_of(local.output).row();
    }
    local.output_gradient = torch::empty_like(local.output, torch::MemoryFormat::Contiguous);
    const Shape shape = detail::TorchTensors::shape_of(local.output);
    return {{local.output.template data_ptr<float>(), shape},
            {local.output_gradient.template data_ptr<float>(), shape}};
  }

  /// The gradients of all parameters for the batch of the last `forward`, from what `loss` wrote into its outputs' gradient,
  /// or with a tensor of libtorch, those of that loss, whose sum over the replicas is what an optimizer lowers. They
  /// overwrite those before, and are zero where nothing flowed; `loss.backward()` by itself would add to them. Throws
  /// InvalidArgument for sparse gradients, and what libtorch throws.
  template <class Loss>
  void backward(const InReplica auto& replica, const Loss& loss) {
    backward(replica, loss, [](IndexRange) {});
  }
  /// The same, calling `when_ready(elements)` as nn::Network::backward does, for nn::OverlappedAllReduce.
  template <class Loss, std::invocable<IndexRange> WhenReady>
  void backward(const InReplica auto& replica, const Loss& loss, WhenReady&& when_ready) {
    Local& local = local_of(replica);
    const detail::FunctionRef<void(IndexRange)> ready{when_ready};
    const Pass pass{*this, local, ready};
    if constexpr (std::same_as<Loss, torch::Tensor>) {
      loss.backward();
    } else if (!local.output.defined()) {
      throw InvalidArgument("A torch_module's backward was called before its forward",
                            text("replica ", replica.replica_id().index(), " has computed no batch yet"),
                            "Call forward and a loss first, in the same replica, or give backward a loss of libtorch");
    } else if (local.output.requires_grad()) {
      local.output.backward(local.output_gradient);
    }
    complete(local);
  }

  /// Its parameters and what it keeps, by their names in libtorch. See Trackable.
  void track(auto& visit) {
    for (const nn::Parameter& place : learned_) visit(place.name(), nn::ParameterPart{parameters_, place});
    if (kept_) nn::TrackedParts{*kept_, kept_layout_}.track(visit);
    if (counted_) nn::TrackedParts{*counted_, counted_layout_}.track(visit);
  }

 private:
  /// A replica's module and its tensors; on cache lines of their own, because each is written by another thread.
  struct alignas(cache_line) Local {
    explicit Local(Made made) : module(std::move(made)), parts(*module) {}

    Made module;
    detail::TorchParts parts;
    std::vector<torch::Tensor> gradients;  // over the strategy's memory, like parts.learned
    Shape row;                             // of an output, as far as one is known
    torch::Tensor output, output_gradient;
    // Of the backward pass that goes on: whom to tell what is ready, which parameters have a gradient, and the first of
    // those at the end that have one and were told of.
    const detail::FunctionRef<void(IndexRange)>* ready = nullptr;
    std::vector<char> has_gradient;
    std::size_t told = 0;
  };

  /// While it lives, gradients of the pass go to the strategy's memory by hooks: where a parameter had a gradient already,
  /// libtorch would read it and add to it, and somebody would have to make it zero before.
  class Pass {
   public:
    Pass(const TorchModule& net, Local& local, const detail::FunctionRef<void(IndexRange)>& ready) : local_(local) {
      for (const torch::Tensor& parameter : local.parts.learned.tensors()) parameter.mutable_grad().reset();
      local.has_gradient.assign(net.learned_.size(), false);
      local.told = net.learned_.size();
      local.ready = &ready;
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      local_.ready = nullptr;
      show_gradients(local_);
    }

   private:
    Local& local_;
  };

  /// The gradients of modules are those in the strategy's memory.
  static void show_gradients(const Local& local) {
    for (std::size_t i = 0; i < local.gradients.size(); ++i)
      local.parts.learned.tensors()[i].mutable_grad() = local.gradients[i];
  }

  template <class Make>
  [[nodiscard]] static std::vector<Local> made_by(Make& make, std::size_t replicas) {
    std::vector<Local> made;
    made.reserve(replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      made.emplace_back(make());
      const detail::TorchParts &first = made.front().parts, &parts = made.back().parts;
      if (!parts.learned.is_like(first.learned) || !parts.kept.is_like(first.kept) ||
          !parts.counted.is_like(first.counted))
        throw InvalidArgument("The function that makes the modules of torch_module makes unlike ones",
                              text("what it made for replica ", replica,
                                   " has parameters or buffers of other names or shapes than that for replica 0"),
                              "Let it make a new module of the same kind at each call");
      if (replica > 0 && parts.learned.tensors()[0].is_same(first.learned.tensors()[0]))
        throw InvalidArgument("The function that makes the modules of torch_module makes one module only",
                              text("what it gave replica ", replica, " is that of replica 0"),
                              "Let it make a new module at each call, as in [] { return Net{}; }");
    }
    return made;
  }

  /// A variable with what `tensors` hold.
  template <class Sync, class Agg, class T, class S>
  [[nodiscard]] static auto variable_of(S& strategy, const detail::TorchTensors& tensors,
                                        const std::vector<nn::Parameter>& layout, std::string name) {
    const auto fill = [&](TensorView<T> all) {
      const torch::NoGradGuard guard;
      for (std::size_t i = 0; i < layout.size(); ++i)
        torch_tensor(TensorView<T>{all.data() + layout[i].offset, layout[i].shape}).copy_(tensors.tensors()[i]);
    };
    return strategy.template variable<T, Sync, Agg>(Shape{detail::elements_of(layout)}, fill, std::move(name));
  }

  /// Lets `tensors` have their elements in `memory`.
  template <class T>
  static void lay(const detail::TorchTensors& tensors, const std::vector<nn::Parameter>& layout, T* memory) {
    for (std::size_t i = 0; i < layout.size(); ++i)
      tensors.tensors()[i].set_data(torch_tensor(TensorView<T>{memory + layout[i].offset, layout[i].shape}));
  }

  /// Lets the gradients of a replica's module go to `memory`.
  void watch(Local& local, float* memory) {
    for (std::size_t i = 0; i < learned_.size(); ++i) {
      local.gradients.push_back(torch_tensor(TensorView<float>{memory + learned_[i].offset, learned_[i].shape}));
      local.parts.learned.tensors()[i].register_hook(
          [this, &local, i](const torch::Tensor& gradient) { take(local, i, gradient); });
    }
    show_gradients(local);
  }

  /// The gradient of a parameter is there.
  void take(Local& local, std::size_t which, const torch::Tensor& gradient) {
    if (local.ready == nullptr) return;  // a backward of the program's own
    if (gradient.layout() != torch::kStrided)
      throw InvalidArgument(text("The gradient of parameter '", learned_[which].name(), "' is sparse"),
                            "the gradients of a torch_module lie in memory next to each other",
                            "Make the module with dense gradients, for an Embedding with sparse(false)");
    const torch::NoGradGuard guard;
    local.gradients[which].copy_(gradient);
    local.has_gradient[which] = true;
    tell(local);
  }

  /// Those to which no gradient flowed are zero.
  void complete(Local& local) {
    for (std::size_t i = learned_.size(); i-- > 0;)
      if (!local.has_gradient[i]) {
        local.gradients[i].zero_();
        local.has_gradient[i] = true;
      }
    tell(local);
  }

  /// Says which gradients at the end are all there.
  void tell(Local& local) const {
    std::size_t first = local.told;
    while (first > 0 && local.has_gradient[first - 1]) --first;
    if (first == local.told) return;
    const std::size_t end = local.told == learned_.size() ? gradients_.size() : learned_[local.told].offset;
    local.told = first;
    (*local.ready)({learned_[first].offset, end});
  }

  [[nodiscard]] Local& local_of(const InReplica auto& replica) {
    static_cast<void>(parameters_.component(replica));  // refuses a replica of another strategy
    if (locals_.size() > 1 && at::get_num_threads() != 1) at::set_num_threads(1);
    return locals_[replica.local_index()];
  }

  std::vector<Local> locals_;
  std::vector<nn::Parameter> learned_, kept_layout_, counted_layout_;
  Parameters parameters_;
  Gradients gradients_;
  std::optional<Kept> kept_;
  std::optional<Counted> counted_;
};

/// Makes a TorchModule on a strategy of the CPU. `make_module` makes a new module at each call, for each replica, and returns
/// a module holder, such as torch::nn::Sequential, or a std::shared_ptr to a module.
template <class S, class Make>
[[nodiscard]] auto torch_module(S& strategy, Make&& make_module) {
  static_assert(detail::holds<Strategy<S>>,
                "torch_module is called with a strategy, such as a dist::Mirrored, and a function that makes "
                "a module: dist::torch_module(strategy, [] { return torch::nn::Linear{3, 2}; })");
  static_assert(detail::holds<std::invocable<Make&>>,
                "torch_module needs a function without arguments that makes a module of libtorch "
                "for each replica, as in [] { return torch::nn::Linear{3, 2}; }");
  if constexpr (Strategy<S> && std::invocable<Make&>) {
    static_assert(std::same_as<typename S::Device, Cpu>,
                  "a torch_module computes on the CPU: use a strategy whose replicas are there, such as "
                  "dist::Mirrored<dist::SharedMemoryAllReduce>");
    static_assert(!S::Store::shared,
                  "a torch_module needs a copy of what it has on every replica: use dist::Mirrored or "
                  "dist::MultiWorker instead of a strategy that keeps one copy of each variable, such as "
                  "CentralStorage");
    using Made = std::remove_cvref_t<std::invoke_result_t<Make&>>;
    static_assert(
        detail::holds<detail::HoldsTorchModule<Made>>,
        "the function that torch_module is given returns a module holder of libtorch or a std::shared_ptr to a "
        "module, not the module itself: return std::make_shared<Module>(…)");
    if constexpr (std::same_as<typename S::Device, Cpu> && !S::Store::shared && detail::HoldsTorchModule<Made>)
      return TorchModule<Made>{strategy, make_module};
    else
      return detail::NoTorchModule{};
  } else {
    return detail::NoTorchModule{};
  }
}

}  // namespace dist
