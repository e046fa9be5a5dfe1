/// Modules of libtorch on a strategy. Works with libtorch 1.13 and newer.
#pragma once

#include <dist/torch/parts.hpp>  // first: it includes what libtorch 1.13 needs before its other headers
#include <dist/torch/sync_batch_norm.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <atomic>
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

#include <dist/context/contexts.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/run_collectively.hpp>
#include <dist/context/strategy.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/random.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/gradient_storage.hpp>
#include <dist/nn/outputs.hpp>
#include <dist/nn/parameter.hpp>
#include <dist/nn/tracked_parts.hpp>
#include <dist/nn/values.hpp>
#include <dist/variable/distributed_variable.hpp>
#include <dist/variable/policies.hpp>
#include <dist/variable/replica_buffer.hpp>

namespace dist {

namespace detail {

/// A libtorch module holder, such as torch::nn::Linear, or a std::shared_ptr to a module.
template <class M>
concept HoldsTorchModule = requires(M& made) {
  { *made } -> std::convertible_to<torch::nn::Module&>;
};
template <class M>
concept TakesTorchTensor = requires(M& made, const torch::Tensor& x) {
  { made->forward(x) } -> std::convertible_to<torch::Tensor>;
};

/// The result of torch_module after a static_assert has failed.
struct NoTorchModule {};

/// Seeds libtorch's generator from its seed and the process's number, except in the first: with equal seeds, all
/// processes would have equal dropout masks.
inline void separate_random_numbers(std::size_t process) {
  if (process == 0) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock{generator.mutex()};
  generator.set_current_seed(RandomStream{generator.current_seed(), process}.bits(0));
}

}  // namespace detail

/// A libtorch module with a copy per replica. Parameters and gradients are tensors in the strategy's memory, where an
/// optimizer reduces and applies them:
///
///     auto net = dist::torch_module(strategy, [] { return Net{}; });  // Net is a torch::nn::ModuleHolder
///     nn::Optimizer optimizer{strategy, net, nn::Adam{}};
///     strategy.run([&](auto& replica, const auto& batch) {
///       auto loss = torch::nll_loss(net.on(replica)->forward(dist::torch_tensor(batch.x)), …) / replicas;
///       net.backward(replica, loss);             // the gradients of this replica's part of the batch
///       optimizer.apply_gradients(replica);      // their sum over the replicas, in one pass with the update
///     }, batch);
///
/// It is a network for nn::Optimizer, nn::Model and nn::OverlappedAllReduce. If the module takes and returns one
/// tensor, `forward` and `backward` work with the library's losses.
///
/// - Parameters are the module's parameters that require a gradient. All replicas of all processes start with the
///   values of the first process's first module. They have libtorch's names, "conv1.weight", and the offsets of
///   `layout()`. All processes must create modules with the same names and shapes in the same order, or the constructor
///   throws.
/// - A parameter without a gradient on all replicas, because it is unused or was frozen later, does not change, as in
///   PyTorch: it does not decay, nor do its slots change.
/// - State: each replica changes its own buffers of type float, such as running statistics, and parameters that require
///   no gradient. Outside replica functions and in files they are the mean of the replicas (an OnRead variable with
///   aggregation Mean, like tf.distribute's BatchNormalization). So a resumed job of several replicas has exactly the
///   same weights, and on every replica the mean of the running statistics. Buffers of 64-bit integers, such as counts,
///   are saved from replica 0. Other buffers stay as make_module creates them.
/// - Load weights from a file in `make_module`, or later by `assign`: `Net loaded; torch::load(loaded, path);
///   net.assign(strategy.scope(), loaded);`. Write them by torch::save of `on(scope, 0)`. torch::load into `on(…)`, and
///   its `to` with another type or device, replace its tensors' memory: the next `on`, `forward` or `backward` throws.
///   Submodules and parameters that are added or replaced later are not trained.
/// - With several replicas in a process, each computes with one thread: `on` and `forward` call at::set_num_threads(1),
///   for the whole process.
/// - libtorch allocates outputs and gradients in each step. glibc returns large allocations to the system at once,
///   which serialises threads: to keep them, run with MALLOC_TRIM_THRESHOLD_=1000000000 and
///   MALLOC_MMAP_THRESHOLD_=1000000000 in the environment.
/// - Random numbers, such as dropout masks, come from libtorch's generator of the process, which its replicas use in
///   any order. The constructor reseeds it from its seed and the process's number, so that masks differ between
///   processes after equal calls of torch::manual_seed. A later torch::manual_seed must differ between processes.
/// - Copies of a module must not outlive this object, which owns the memory of their tensors.
template <detail::HoldsTorchModule Made>
class TorchModule {
 public:
  /// The type of parameters and gradients: libtorch's default.
  using Element = float;
  /// The parameters that training changes. Gradients are aggregated before the optimizer writes them.
  using Parameters = DistributedVariable<float, OnWrite, None>;
  /// The gradients, one array for each replica.
  using Gradients = ReplicaBuffer<float>;
  /// Float buffers of modules, such as moving statistics. Reads aggregate them as a mean.
  using Kept = DistributedVariable<float, OnRead, Mean>;
  /// Integer buffers of modules, such as counts of batches. Reads return the values of replica 0.
  using Counted = DistributedVariable<std::int64_t, OnRead, OnlyFirstReplica>;
  /// A replica's gradients.
  using Span = typename Gradients::Span;

  /// True: libtorch stores gradients in an array, instead of passing them to the optimizer layer by layer.
  static constexpr bool stores_gradients = true;

  /// Calls `make()` for each replica of this process. A collective call of the processes, outside replica functions.
  /// Throws InvalidArgument for parameters that are not floats on the CPU, for a module without parameters to train,
  /// and if `make` returns different modules; CollectiveMismatch if processes create different modules; OutOfMemory;
  /// and libtorch's errors.
  template <Strategy S, std::invocable Make>
  TorchModule(S& strategy, Make& make)
      : locals_(made_by(strategy, make)),
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
      lay(local, local.parts.learned, learned_, parameters_.component(scope, replica).data());
      if (kept_) lay(local, local.parts.kept, kept_layout_, kept_->component(scope, replica).data());
      if (counted_) lay(local, local.parts.counted, counted_layout_, counted_->component(scope, replica).data());
      watch(local, gradients_.component(scope, replica).data());
    }
    detail::separate_random_numbers(strategy.workers().communicator().rank());
  }
  TorchModule(const TorchModule&) = delete;
  TorchModule& operator=(const TorchModule&) = delete;

  /// The parameters of all layers, in the order of `layout()`.
  [[nodiscard]] Parameters& parameters() noexcept { return parameters_; }
  /// Returns the gradients for reading and writing: from then on `take_gradients` requires no `backward`.
  [[nodiscard]] Gradients& gradients() noexcept {
    if (!may_be_written_.load(std::memory_order_relaxed)) may_be_written_.store(true, std::memory_order_relaxed);
    return gradients_;
  }
  /// Returns the gradients for reading.
  [[nodiscard]] const Gradients& gradients() const noexcept { return gradients_; }
  /// Returns name, shape and offset of every parameter.
  [[nodiscard]] std::span<const nn::Parameter> layout() const noexcept { return learned_; }

  /// Returns the calling replica's module. Throws WrongStrategy, and InvalidArgument if its tensors were replaced.
  [[nodiscard]] Made& on(const InReplica auto& replica) {
    Local& local = local_of(replica);
    attach(local, replica);
    return local.module;
  }
  /// Returns the module of a replica of this process, outside replica functions.
  [[nodiscard]] Made& on(const InCrossReplica auto& scope, std::size_t local_replica) {
    static_cast<void>(parameters_.component(scope, local_replica));
    Local& local = locals_[local_replica];
    for (TorchSyncBatchNormImpl* const norm : local.synchronised) norm->attach(nullptr);
    return local.module;
  }

  /// Returns a copy of a parameter by its name, outside replica functions. Throws InvalidArgument for an unknown name.
  [[nodiscard]] Tensor<float> parameter(const InCrossReplica auto& scope, std::string_view name) const {
    return nn::detail::part_of(parameters_, scope, nn::detail::parameter_named(learned_, name));
  }
  /// Assigns a parameter in every copy. Throws like nn::Network::assign_parameter.
  template <class Values>
  void assign_parameter(const InCrossReplica auto& scope, std::string_view name, const Values& values) {
    nn::ParameterPart{parameters_, nn::detail::parameter_named(learned_, name)}.restore(scope, values);
  }

  /// Copies another module's parameters and buffers, in all processes from the first, to all replicas' modules. A
  /// collective call of the processes. Throws InvalidArgument for a module with other names or shapes.
  void assign(const InCrossReplica auto& scope, const Made& other) {
    const torch::nn::Module& module = *other;
    const auto parameters = module.named_parameters(), buffers = module.named_buffers();
    const auto of_other = [&](const nn::Parameter& place) {
      const std::string name = place.name();
      const torch::Tensor* found = parameters.find(name);
      if (found == nullptr) found = buffers.find(name);
      if (found == nullptr || detail::TorchTensors::shape_of(*found) != place.shape)
        throw InvalidArgument(concat("A module has no '", name, "' of shape ", to_string(place.shape), " to assign"),
                              found == nullptr
                                  ? std::string{"it has no parameter or buffer of that name"}
                                  : concat("its shape is ", to_string(detail::TorchTensors::shape_of(*found))),
                              "Give assign a module made by the function of torch_module");
      return *found;
    };
    const auto take = [&](auto& variable, std::span<const nn::Parameter> layout) {
      Tensor<typename std::remove_cvref_t<decltype(variable)>::Element> all{variable.shape()};
      copy(of_other, layout, all.view());
      scope.strategy().workers().broadcast(0, all.elements());
      variable.assign(scope, all);
    };
    dist::detail::run_collectively(scope.strategy(), [&] {
      take(parameters_, learned_);
      if (kept_) take(*kept_, kept_layout_);
      if (counted_) take(*counted_, counted_layout_);
    });
  }

  /// Returns the module's output for a batch, a tensor or a view, and the destination of the loss's gradient. Inference
  /// uses the module's evaluation mode. `x` must not change until `backward`. An empty batch does not reach a module
  /// without TorchSyncBatchNorm.
  /// Throws InvalidArgument for a result of another type than float, and libtorch's errors.
  template <InReplica Replica, nn::Values X, nn::ForwardMode Mode = nn::Training>
  [[nodiscard]] nn::Outputs<float> forward(const Replica& replica, const X& x, Mode = {}) {
    static_assert(
        detail::TakesTorchTensor<Made>,
        "forward of a torch_module is for modules whose forward takes one tensor and returns one: call "
        "net.on(replica)->forward(…) with its arguments, and net.backward(replica, loss) with a loss of libtorch");
    constexpr bool trains = std::same_as<Mode, nn::Training>;
    Local& local = local_of(replica);
    const auto batch = nn::values_of(x);
    attach(local, replica);
    if (batch.rows() == 0 && local.synchronised.empty()) {
      local.output = torch::empty(detail::torch_sizes(local.row.stacked(0)));
    } else {
      if (local.module->is_training() != trains) local.module->train(trains);
      const torch::AutoGradMode remembers{trains};
      local.output = torch::Tensor{local.module->forward(torch_tensor(batch))}.contiguous();
      if (local.output.scalar_type() != torch::kFloat32 || local.output.dim() == 0)
        throw InvalidArgument("A module of libtorch returned an output that no loss of dist accepts",
                              concat("elements of type ", c10::toString(local.output.scalar_type()), " in ",
                                     local.output.dim(), " dimensions"),
                              "Let its forward return a tensor of floats with one row for each example");
      local.row = detail::TorchTensors::shape_of(local.output).row();
    }
    local.output_gradient = torch::empty_like(local.output, torch::MemoryFormat::Contiguous);
    const Shape shape = detail::TorchTensors::shape_of(local.output);
    return {{local.output.template data_ptr<float>(), shape},
            {local.output_gradient.template data_ptr<float>(), shape}};
  }

  /// Computes the gradients of all parameters for the last `forward`, from the gradient that `loss` wrote, or of a
  /// libtorch tensor `loss`. An optimizer minimises the sum of the replicas' losses. Unused parameters have gradient 0.
  /// As in PyTorch, gradients add up over calls until an optimizer applies them or `zero_grad` discards them.
  /// `loss.backward()` alone does not prepare them for an optimizer. Throws InvalidArgument for sparse gradients, and
  /// if the module's tensors were replaced; and libtorch's errors.
  template <class Loss>
  void backward(const InReplica auto& replica, const Loss& loss) {
    compute_gradients(
        replica, loss, [](IndexRange) {}, Held::gradients);
  }
  /// Computes gradients and calls `when_ready(elements)` like nn::Network::backward, for nn::OverlappedAllReduce. They
  /// are added to gradients of earlier calls without `when_ready`, as with no_sync of PyTorch's
  /// DistributedDataParallel. Because `when_ready` may reduce them, the next `backward` throws InvalidArgument unless
  /// they were applied or discarded.
  template <class Loss, std::invocable<IndexRange> WhenReady>
  void backward(const InReplica auto& replica, const Loss& loss, WhenReady&& when_ready) {
    compute_gradients(replica, loss, when_ready, Held::sums);
  }

  /// Discards this replica's unapplied gradients, as does the module's own zero_grad.
  void zero_grad(const InReplica auto& replica) {
    for (const torch::Tensor& parameter : local_of(replica).parts.learned.tensors()) parameter.mutable_grad().reset();
    take_over_discarded(local_of(replica));
  }

  /// Returns this replica's gradients to an optimizer, once after one or several `backward`. Throws InvalidArgument if
  /// they were taken before, or without a `backward`.
  [[nodiscard]] Span take_gradients(const InReplica auto& replica) {
    const Span gradients = gradients_.component(replica);
    Local& local = locals_[replica.local_index()];
    take_over_discarded(local);
    if (may_be_written_.load(std::memory_order_relaxed)) {
      for (std::size_t i = 0; i < learned_.size(); ++i)
        if (local.gradients[i].count_nonzero().template item<std::int64_t>() > 0) local.has_gradient[i] = 1;
    } else if (local.held == Held::nothing) {
      nn::detail::refuse_gradients(replica.replica_id().index(), local.has_computed,
                                   "Call net.backward(replica, loss) before each apply_gradients, not loss.backward()");
    }
    local.held = Held::nothing;
    return gradients;
  }
  /// See nn::MayLackGradients.
  [[nodiscard]] std::span<std::uint8_t> has_gradients(const InReplica auto& replica) {
    return locals_[replica.local_index()].has_gradient;
  }

  /// Tracks parameters and state, by libtorch's names. See Trackable.
  void track(auto& visit) {
    for (const nn::Parameter& place : learned_) visit(place.name(), nn::ParameterPart{parameters_, place});
    if (kept_) nn::TrackedParts{*kept_, kept_layout_}.track(visit);
    if (counted_) nn::TrackedParts{*counted_, counted_layout_}.track(visit);
  }

 private:
  /// A replica's gradients: none (applied or discarded), its own, or possibly sums over the replicas.
  enum class Held : char { nothing, gradients, sums };

  /// A module's tensor and its place in the strategy's memory.
  struct Laid {
    torch::Tensor tensor;
    const void* memory;
  };

  /// A replica's module and tensors; on separate cache lines, as different threads write them.
  struct alignas(cache_line) Local {
    explicit Local(Made made) : module(std::move(made)), parts(*module), has_gradient(parts.learned.size()) {
      for (const std::shared_ptr<torch::nn::Module>& part : module->modules())
        if (auto* const norm = part->template as<TorchSyncBatchNormImpl>()) synchronised.push_back(norm);
    }

    Made module;
    detail::TorchParts parts;
    std::vector<TorchSyncBatchNormImpl*> synchronised;  // parts of the module
    std::vector<Laid> laid;                             // the tensors of parts, in the same order
    std::vector<torch::Tensor> gradients;               // in the strategy's memory, in the order of parts.learned
    Shape row;                                          // of an output, once known
    torch::Tensor output, output_gradient;
    Held held = Held::nothing;
    bool has_computed = false;               // a backward was called
    std::vector<std::uint8_t> has_gradient;  // of parameters, since the last update
    // The current backward pass: the function to call, true if it adds to existing gradients, parameters whose gradient
    // has arrived, and the first one reported.
    const detail::FunctionRef<void(IndexRange)>* ready = nullptr;
    bool adds = false;
    std::vector<char> has_come;
    std::size_t told = 0;
  };

  /// A backward pass, in which hooks write gradients to the strategy's memory. The module has no gradients meanwhile:
  /// otherwise libtorch would add to them, and they would need zeroing first. A pass that throws leaves no gradients.
  class Pass {
   public:
    Pass(const TorchModule& net, Local& local, const detail::FunctionRef<void(IndexRange)>& ready) : local_(local) {
      for (const torch::Tensor& parameter : local.parts.learned.tensors()) parameter.mutable_grad().reset();
      local.has_come.assign(net.learned_.size(), false);
      local.told = net.learned_.size();
      local.ready = &ready;
      local.adds = local.held != Held::nothing;
      local.held = Held::nothing;
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      local_.ready = nullptr;
      if (local_.held == Held::nothing) std::ranges::fill(local_.has_gradient, 0);
      show_gradients(local_);
    }

   private:
    Local& local_;
  };

  /// Sets a module's gradients to the tensors in the strategy's memory.
  static void show_gradients(const Local& local) {
    for (std::size_t i = 0; i < local.gradients.size(); ++i)
      local.parts.learned.tensors()[i].mutable_grad() = local.gradients[i];
  }

  /// Zeroes gradients that a zero_grad left undefined, so that they are not applied.
  static void take_over_discarded(Local& local) {
    std::size_t discarded = 0;
    for (std::size_t i = 0; i < local.gradients.size(); ++i)
      if (!local.parts.learned.tensors()[i].grad().defined()) {
        local.gradients[i].zero_();
        local.has_gradient[i] = 0;
        ++discarded;
      }
    if (discarded == local.gradients.size()) local.held = Held::nothing;
    if (discarded > 0) show_gradients(local);
  }

  /// Returns a module for each replica of this process.
  template <class S, class Make>
  [[nodiscard]] static std::vector<Local> made_by(const S& strategy, Make& make) {
    return detail::run_collectively(strategy, [&] {
      std::vector<Local> made;
      made.reserve(strategy.num_local_replicas());
      for (std::size_t replica = 0; replica < strategy.num_local_replicas(); ++replica) {
        made.emplace_back(make());
        const detail::TorchParts &first = made.front().parts, &parts = made.back().parts;
        if (parts.description != first.description) {
          const auto [of_first, of_this] = detail::first_difference(first.description, parts.description);
          throw InvalidArgument("The function of torch_module makes modules that differ",
                                concat("replica 0 has ", of_first, ", replica ", replica, " has ", of_this),
                                "Let it make a new module of the same kind at each call");
        }
        if (replica > 0 && parts.learned.tensors()[0].is_same(first.learned.tensors()[0]))
          throw InvalidArgument("The function of torch_module returns the same module for several replicas",
                                concat("replica ", replica, " received the module of replica 0"),
                                "Let it make a new module at each call, as in [] { return Net{}; }");
      }
      if constexpr (!CollectivesOfOne<decltype(strategy.workers())>)
        require_same_in_all_processes(strategy.workers(), made.front().parts.description);
      return made;
    });
  }
  /// Throws CollectiveMismatch, with the first difference, unless all processes have the same description.
  template <class Workers>
  static void require_same_in_all_processes(const Workers& workers, const std::string& description) {
    PerReplica<std::uint64_t> hashes(workers.communicator().size());
    workers.all_gather_values("module of libtorch", detail::hash_of(description),
                              std::span<std::uint64_t>{hashes.begin(), hashes.size()});
    const auto other =
        std::find_if(hashes.begin(), hashes.end(), [&](std::uint64_t hash) { return hash != hashes[0]; });
    if (other == hashes.end()) return;
    const auto of_worker = [&](std::size_t worker) {
      std::uint64_t size = description.size();
      workers.broadcast(worker, std::span<std::uint64_t>{&size, 1});
      std::string lines = description;
      lines.resize(size);
      workers.broadcast(worker, std::span<char>{lines});
      return lines;
    };
    const auto worker = static_cast<std::size_t>(other - hashes.begin());
    const auto [of_first, of_other] = detail::first_difference(of_worker(0), of_worker(worker));
    throw CollectiveMismatch("The workers did not make the same module of libtorch",
                             concat("worker 0 has ", of_first, ", worker ", worker, " has ", of_other),
                             "Register the same children, parameters and buffers in the same order on every worker");
  }

  /// Copies tensors to their places in `all`.
  template <class TensorOf, class T>
  static void copy(const TensorOf& tensor_of, std::span<const nn::Parameter> layout, TensorView<T> all) {
    const torch::NoGradGuard guard;
    for (const nn::Parameter& place : layout)
      torch_tensor(TensorView<T>{all.data() + place.offset, place.shape}).copy_(tensor_of(place));
  }
  /// Returns a variable initialised with `tensors`.
  template <class Sync, class Agg, class T, class S>
  [[nodiscard]] static auto variable_of(S& strategy, const detail::TorchTensors& tensors,
                                        const std::vector<nn::Parameter>& layout, std::string name) {
    const auto fill = [&](TensorView<T> all) {
      auto next = tensors.tensors().begin();
      copy([&](const nn::Parameter&) { return *next++; }, layout, all);
    };
    return strategy.template variable<T, Sync, Agg>(Shape{detail::elements_of(layout)}, fill, std::move(name));
  }

  /// Moves the elements of a module's `tensors` to `memory`.
  template <class T>
  static void lay(Local& local, const detail::TorchTensors& tensors, const std::vector<nn::Parameter>& layout,
                  T* memory) {
    for (std::size_t i = 0; i < layout.size(); ++i) {
      T* const place = memory + layout[i].offset;
      tensors.tensors()[i].set_data(torch_tensor(TensorView<T>{place, layout[i].shape}));
      local.laid.push_back({tensors.tensors()[i], place});
    }
  }

  /// Makes a replica's module write its gradients to `memory`.
  void watch(Local& local, float* memory) {
    for (std::size_t i = 0; i < learned_.size(); ++i) {
      local.gradients.push_back(torch_tensor(TensorView<float>{memory + learned_[i].offset, learned_[i].shape}));
      local.parts.learned.tensors()[i].register_hook(
          [this, &local, i](const torch::Tensor& gradient) { take(local, i, gradient); });
    }
    show_gradients(local);
  }

  template <class Loss, class WhenReady>
  void compute_gradients(const InReplica auto& replica, const Loss& loss, const WhenReady& when_ready, Held then) {
    Local& local = local_of(replica);
    take_over_discarded(local);
    if (local.held == Held::sums)
      throw InvalidArgument(
          "A torch_module's backward was called before reduced gradients were applied",
          concat("replica ", replica.replica_id().index(), " would add its own gradients to sums over the replicas"),
          "Call apply_gradients before the next backward, or net.zero_grad(replica) to discard them");
    const detail::FunctionRef<void(IndexRange)> ready{when_ready};
    const Pass pass{*this, local, ready};
    if constexpr (std::same_as<Loss, torch::Tensor>) {
      loss.backward();
    } else if (!local.output.defined()) {
      throw InvalidArgument("A torch_module's backward was called before its forward",
                            concat("replica ", replica.replica_id().index(), " has not computed a batch yet"),
                            "Call forward and a loss first, in the same replica, or give backward a loss of libtorch");
    } else if (local.output.requires_grad()) {
      local.output.backward(local.output_gradient);
    }
    complete(local);
    local.has_computed = true;
    local.held = then;
  }

  /// Stores a parameter's gradient when it arrives.
  void take(Local& local, std::size_t which, const torch::Tensor& gradient) {
    if (local.ready == nullptr) return;  // a backward that the program called
    if (gradient.layout() != torch::kStrided)
      throw InvalidArgument(concat("The gradient of parameter '", learned_[which].name(), "' is sparse"),
                            "the gradients of a torch_module are contiguous in memory",
                            "Make the module with dense gradients, for an Embedding with sparse(false)");
    const torch::NoGradGuard guard;
    if (local.adds)
      local.gradients[which].add_(gradient);
    else
      local.gradients[which].copy_(gradient);
    local.has_come[which] = true;
    local.has_gradient[which] = 1;
    tell(local);
  }

  /// Zeroes gradients that have not arrived, unless the pass adds to earlier ones.
  void complete(Local& local) {
    for (std::size_t i = 0; i < learned_.size(); ++i)
      if (!local.has_come[i] && !local.adds) local.gradients[i].zero_();
    std::ranges::fill(local.has_come, true);
    tell(local);
  }

  /// Reports complete gradients, from the last parameter on.
  void tell(Local& local) const {
    std::size_t first = local.told;
    while (first > 0 && local.has_come[first - 1]) --first;
    if (first == local.told) return;
    const std::size_t end = local.told == learned_.size() ? gradients_.size() : learned_[local.told].offset;
    local.told = first;
    (*local.ready)({learned_[first].offset, end});
  }

  /// Lets the module exchange statistics with other replicas in this step.
  static void attach(Local& local, const InReplica auto& replica) {
    for (TorchSyncBatchNormImpl* const norm : local.synchronised)
      norm->attach([replica](std::span<double> values) { replica.all_reduce(sum, values); });
  }

  [[nodiscard]] Local& local_of(const InReplica auto& replica) {
    static_cast<void>(parameters_.component(replica));  // throws for a replica of another strategy
    if (locals_.size() > 1 && at::get_num_threads() != 1) at::set_num_threads(1);
    Local& local = locals_[replica.local_index()];
    require_in_place(local);
    return local;
  }
  /// Throws InvalidArgument if training would have no effect on the module.
  void require_in_place(const Local& local) const {
    for (std::size_t i = 0; i < local.laid.size(); ++i)
      if (local.laid[i].tensor.unsafeGetTensorImpl()->data() != local.laid[i].memory &&
          local.laid[i].tensor.numel() > 0)
        throw InvalidArgument(
            concat("Tensor '", name_of(i), "' of a torch_module is outside the strategy's memory"),
            "torch::load into the module, to() and set_data replace the memory of its tensors",
            "Load into another module of the same kind and call net.assign(strategy.scope(), loaded), or let the "
            "function "
            "that makes the modules load the file");
    for (std::size_t i = 0; i < local.parts.kept.size(); ++i)
      if (local.parts.kept.tensors()[i].requires_grad())
        throw InvalidArgument(concat("Parameter '", kept_layout_[i].name(),
                                     "' of a torch_module requires a gradient, but is not trained"),
                              "it required none when the module was made",
                              "Make the module with a parameter that requires a gradient, and freeze it with "
                              "set_requires_grad(false) until its training starts");
  }
  [[nodiscard]] std::string name_of(std::size_t laid) const {
    for (const std::vector<nn::Parameter>* const layout : {&learned_, &kept_layout_, &counted_layout_}) {
      if (laid < layout->size()) return (*layout)[laid].name();
      laid -= layout->size();
    }
    return {};
  }

  std::vector<Local> locals_;
  std::vector<nn::Parameter> learned_, kept_layout_, counted_layout_;
  Parameters parameters_;
  Gradients gradients_;
  std::optional<Kept> kept_;
  std::optional<Counted> counted_;
  std::atomic<bool> may_be_written_{false};
};

/// Creates a TorchModule on a strategy of the CPU. `make_module` returns a new module at each call, one per replica: a
/// module holder, such as torch::nn::Sequential, or a std::shared_ptr to a module.
template <class S, class Make>
[[nodiscard]] auto torch_module(S& strategy, Make&& make_module) {
  static_assert(detail::satisfied<Strategy<S>>,
                "torch_module takes a strategy, such as a dist::Mirrored, and a function that makes a module: "
                "dist::torch_module(strategy, [] { return torch::nn::Linear{3, 2}; })");
  static_assert(detail::satisfied<std::invocable<Make&>>,
                "torch_module needs a function without arguments that makes a module of libtorch "
                "for each replica, as in [] { return torch::nn::Linear{3, 2}; }");
  if constexpr (Strategy<S> && std::invocable<Make&>) {
    static_assert(std::same_as<typename S::Device, Cpu>,
                  "a torch_module computes on the CPU: use a strategy with replicas on the CPU, such as "
                  "dist::Mirrored<dist::ThreadAllReduce>");
    static_assert(
        !S::Store::shared,
        "a torch_module needs a copy of its tensors on every replica: use dist::Mirrored or dist::MultiWorker instead "
        "of a strategy that keeps one copy of each variable, such as CentralStorage");
    using Made = std::remove_cvref_t<std::invoke_result_t<Make&>>;
    static_assert(detail::satisfied<detail::HoldsTorchModule<Made>>,
                  "the function given to torch_module must return a module holder of libtorch or a std::shared_ptr to "
                  "a module, not the module itself: return std::make_shared<Module>(…)");
    if constexpr (std::same_as<typename S::Device, Cpu> && !S::Store::shared && detail::HoldsTorchModule<Made>)
      return TorchModule<Made>{strategy, make_module};
    else
      return detail::NoTorchModule{};
  } else {
    return detail::NoTorchModule{};
  }
}

}  // namespace dist
