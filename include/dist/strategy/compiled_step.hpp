#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/communicator.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/pjrt/xla.hpp>
#include <dist/hlo/compile_cache.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/strategy/step_values.hpp>
#include <dist/strategy/trace_context.hpp>

namespace dist {

namespace detail {

inline constinit Warning compiled_again{};

/// Throws InvalidArgument unless the replicas are on the first devices of the client, one per device.
template <class S>
void require_first_devices(const S& strategy) {
  const std::vector<std::string> devices = strategy.worker_devices();
  for (std::size_t replica = 0; replica < devices.size(); ++replica)
    if (devices[replica] != Xla::device_name(replica))
      throw InvalidArgument("A step cannot be compiled for these devices",
                            concat("replica ", replica, " of ", strategy.describe(), " is on ", devices[replica],
                                   ", but a program runs its replicas on the first devices, one on each"),
                            "Give the number of replicas, at most the number of devices, and do not name devices");
}

}  // namespace detail

/// A step that XLA compiles for the replicas of a strategy on Xla devices: `strategy.compile(step)`. The first call
/// traces the step with a TraceContext and traced arrays, and XLA compiles the recorded operations to a program, which
/// all calls run. The step's variables stay on the devices between calls.
///
/// Takes the arguments of `strategy.run`. A tensor of a PerReplica has the rows of the replica's batch on its first
/// axis, whose extent in the step is hlo::batch. Smaller batches are padded; losses, metrics and statistics count only
/// valid rows (`replica.rows()`). Under a strategy with one unwrapped replica, every tensor belongs to the batch.
/// Numbers and tensors are arguments of the program; captured values are constants.
///
/// Returns the results of `run`, with traced arrays converted: a number to a hlo::PendingNumber, for which only readers
/// wait, an array to a Tensor. An array whose first extent is hlo::batch has the rows of the replica's batch; a
/// hlo::Dynamic also has the padding: return `x.as<hlo::batch, ...>()` instead.
///
/// The variables of the traced step must outlive all calls.
template <class S, class Step>
class CompiledStep {
  static_assert(
      !S::Store::shared,
      "a compiled step needs a copy of every variable on each device, and this strategy keeps one for all: use "
      "dist::Tpu<> or Mirrored<XlaAllReduce>");
  static_assert(CollectivesOfOne<typename S::Workers::WorkerCollectives>,
                "a compiled step is for the replicas of one process: use dist::Tpu<> or Mirrored<XlaAllReduce>");

 public:
  /// XLA's errors show `line`. Throws InvalidArgument unless the replicas are on the first devices of the client, one
  /// per device.
  CompiledStep(S& strategy, Step step, const CompileOptions& options = {}, SourceLine line = here())
      : strategy_(&strategy), step_(std::move(step)), line_(line), most_forms_(options.most_forms) {
    detail::require_first_devices(strategy);
    std::string folder = options.cache;
    if (const char* const named = std::getenv("DIST_COMPILE_CACHE"); folder.empty() && named != nullptr) folder = named;
    if (!folder.empty()) cache_.emplace(std::move(folder));
  }

  /// Throws WrongStrategy in replica functions if the strategy has several replicas, and for values of another
  /// strategy; ShapeMismatch if tensors of a batch differ in rows, or shapes between replicas; InvalidArgument for too
  /// many forms of arguments, and destroyed variables; errors of tracing the step, ProgramRefused, and PjrtError.
  template <class... Args>
  auto operator()(const Args&... args) {
    constexpr bool takes = (detail::is_step_argument<OfReplica<Args>> && ...);
    static_assert(takes,
                  "a compiled step takes numbers, tensors, and tuples, pairs, arrays and dist::data::Example of these");
    if constexpr (takes) {
      constexpr bool returns = detail::is_step_result<ResultOf<Args...>>;
      static_assert(
          returns,
          "a compiled step returns traced arrays, with hlo::batch as the first extent only, tuples, pairs and "
          "arrays of these, or nothing");
      if constexpr (returns) return call(args...);
    }
  }

  /// The number of compiled programs.
  [[nodiscard]] std::size_t programs() const noexcept { return programs_.size(); }

 private:
  using Context = TraceContext<S>;
  using Resident = pjrt::ManagedMemory::Resident;

  /// The numbers of a variable and its part.
  struct Written {
    std::size_t variable, part;
  };
  struct Program {
    detail::StepForm form;
    std::size_t rows;
    pjrt::Executable executable;
    std::vector<std::vector<std::shared_ptr<Resident>>> variables;  // for each replica
    std::vector<Written> written;                                   // their new elements are the first results
    std::vector<detail::HostValues> numbers;
    std::vector<detail::HostChoice> choices;
    std::vector<std::function<void()>> beforehand;
    std::vector<std::function<void()>> afterwards;
    bool asks_rows;                           // row_numbers is an argument
    std::vector<std::size_t> rows_told = {};  // for each replica, in row_numbers
    std::vector<pjrt::Buffer> row_numbers = {};
  };
  /// The type of an argument in a replica.
  template <class Given>
  using OfReplica = std::remove_cvref_t<decltype(select_replica(0, std::declval<const Given&>()))>;
  template <class Given>
  using TracedOf =
      decltype(detail::map_leaves(std::declval<const OfReplica<Given>&>(), std::declval<detail::LeafArguments&>()));
  template <class... Args>
  using ResultOf = std::remove_cvref_t<std::invoke_result_t<Step&, Context&, TracedOf<Args>&...>>;

  template <class... Args>
  auto call(const Args&... args) {
    if (detail::run_here.is_replica_function())
      throw WrongStrategy("A compiled step was called inside a replica function",
                          "one call runs the step on all replicas, and a replica function runs on each replica",
                          "Call it where strategy.run is called, or call the step itself");
    (require_value_per_replica(replicas(), args, "a compiled step was given"), ...);
    const auto form = detail::StepForm::of<!S::wraps_values>(replicas(), args...);
    Program& program = program_for(form, args...);
    for (const auto& call : program.beforehand) call();
    Transfers transfers{program, form.rows()};
    std::vector<std::vector<pjrt::Buffer>> results = program.executable.execute(transfers.lists(client(), args...));
    for (std::size_t replica = 0; replica < replicas(); ++replica)
      for (std::size_t i = 0; i < program.written.size(); ++i)
        program.variables[replica][program.written[i].variable]->replace(program.written[i].part,
                                                                         std::move(results[replica][i]));
    transfers.wait();  // afterwards, the caller may change the arguments
    for (const auto& call : program.afterwards) call();
    return host_results<ResultOf<Args...>>(program, results, form.rows());
  }

  [[nodiscard]] std::size_t replicas() const noexcept { return strategy_->num_local_replicas(); }
  [[nodiscard]] const pjrt::Client& client() const { return strategy_->template memory_on<Xla>()->client(); }

  template <class... Args>
  [[nodiscard]] Program& program_for(const detail::StepForm& form, const Args&... args) {
    const Program* alike = nullptr;  // another choice, for the same forms of arguments
    for (Program& program : programs_) {
      if (!form.fits(program.form, program.rows)) continue;
      alike = &program;
      if (std::all_of(program.choices.begin(), program.choices.end(),
                      [](const detail::HostChoice& choice) { return choice.now() == choice.taken; }))
        return program;
    }
    if (alike != nullptr) return programs_.emplace_back(compiled(alike->form, alike->rows, args...));
    if (form.is_empty())
      throw InvalidArgument("A step cannot be compiled for a batch without rows",
                            "the shapes of its tensors and their greatest number of rows are still unknown",
                            "First call the step with a batch that has rows");
    if (forms_ == most_forms_)
      throw InvalidArgument(
          concat("A compiled step has received more than ", most_forms_, " forms of arguments"),
          concat("the last one had ", programs_.back().form.description(), ", and this call has ", form.description()),
          "Give batches of one shape, the largest first, or increase CompileOptions::most_forms");
    if (!programs_.empty() && !detail::compiled_again.was_given())
      detail::compiled_again.emit(concat(
          "A step is compiled again, for ", form.description(), " instead of ", programs_.front().form.description(),
          ". Batches of one shape, the largest first, need only one program. DIST_WARNINGS=0 silences this."));
    programs_.push_back(compiled(form, form.most_rows(), args...));
    ++forms_;
    return programs_.back();
  }

  template <class... Args>
  [[nodiscard]] Program compiled(const detail::StepForm& form, std::size_t rows, const Args&... args) {
    hlo::Trace trace{replicas(), rows == 0 ? std::nullopt : std::optional{rows}};
    const hlo::Scope scope{"step", line_};
    std::vector<hlo::Value> leaves;
    [[maybe_unused]] const auto add_leaf = [&]<class Leaf>(const Leaf&, auto) {
      const detail::StepForm::Leaf& leaf = form.leaves()[leaves.size()];
      leaves.push_back(trace.argument(
          {hlo::element_kind<detail::ElementOfLeaf<Leaf>>, leaf.has_rows ? leaf.shape.stacked(rows) : leaf.shape}));
    };
    (detail::for_each_leaf<false>(0, args, add_leaf), ...);
    detail::StepTrace step;
    const std::vector<hlo::Value> returned = call_traced(step, leaves, args...);

    std::vector<hlo::Value> arguments, results;
    std::vector<hlo::Donation> donations;
    std::vector<Written> written;
    for (std::size_t variable = 0; variable < step.variables.size(); ++variable) {
      std::size_t number = 0;
      for (const detail::TracedVariable::Part& part : step.variables[variable].parts()) {
        arguments.push_back(part.before);
        if (part.is_written) {
          donations.push_back({arguments.size() - 1, results.size()});
          results.push_back(part.after);
          written.push_back({variable, number});
        }
        ++number;
      }
    }
    arguments.insert(arguments.end(), leaves.begin(), leaves.end());
    if (step.row_numbers) arguments.push_back(*step.row_numbers);
    for (const detail::HostValues& numbers : step.numbers) arguments.push_back(numbers.argument);
    results.insert(results.end(), returned.begin(), returned.end());

    const std::string module = trace.module(arguments, results, donations);
    Program program{
        form,
        rows,
        cache_ ? cache_->executable(client(), module, replicas()) : pjrt::Executable{client(), module, replicas()},
        std::vector<std::vector<std::shared_ptr<Resident>>>(replicas()),
        std::move(written),
        std::move(step.numbers),
        std::move(step.choices),
        std::move(step.beforehand),
        std::move(step.afterwards),
        step.row_numbers.has_value()};
    for (std::size_t replica = 0; replica < replicas(); ++replica)
      for (const detail::TracedVariable& variable : step.variables)
        program.variables[replica].push_back(variable.resident(replica));
    return program;
  }
  /// Calls the step with traced arguments, and returns its results in order.
  template <class... Args>
  [[nodiscard]] std::vector<hlo::Value> call_traced(detail::StepTrace& step, std::span<const hlo::Value> leaves,
                                                    const Args&... args) {
    Context context{*strategy_, step};
    detail::LeafArguments next{leaves};
    // evaluated in order
    std::tuple<TracedOf<Args>...> traced{detail::map_leaves(select_replica(0, args), next)...};
    std::vector<hlo::Value> returned;
    std::apply(
        [&](auto&... each) {
          if constexpr (std::is_void_v<ResultOf<Args...>>)
            step_(context, each...);
          else
            detail::for_each_array(step_(context, each...),
                                   [&](const auto& array) { returned.push_back(array.value()); });
        },
        traced);
    return returned;
  }

  /// The arguments of one call, on the replicas' devices.
  class Transfers {
   public:
    Transfers(Program& program, const std::vector<std::size_t>& rows) : program_(program), rows_(rows) {}
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;
    ~Transfers() {
      for (const pjrt::Event& event : events_) try {
          event.wait();           // because the plugin reads the caller's memory
        } catch (const Error&) {  // if another error is already being thrown
        }
    }

    template <class... Args>
    [[nodiscard]] std::vector<std::vector<const pjrt::Buffer*>> lists(const pjrt::Client& client, const Args&... args) {
      if (program_.asks_rows && program_.rows_told != rows_) tell_rows(client);
      std::vector<std::vector<const pjrt::Buffer*>> lists(rows_.size());
      std::vector<Tensor<float>> numbers;
      for (const detail::HostValues& of_host : program_.numbers) numbers.push_back(of_host.make());
      for (std::size_t replica = 0; replica < rows_.size(); ++replica) {
        auto& list = lists[replica];
        for (const auto& variable : program_.variables[replica]) variable->on_device(list);
        [[maybe_unused]] std::size_t leaf = 0;
        (add(client, replica, leaf, list, args), ...);
        if (program_.asks_rows) list.push_back(&program_.row_numbers[replica]);
        for (const Tensor<float>& each : numbers)
          list.push_back(&buffers_.emplace_back(pjrt::upload(client, replica, each)));
      }
      return lists;
    }
    void wait() {
      for (; !events_.empty(); events_.pop_back()) events_.back().wait();
    }

   private:
    template <class Given>
    void add(const pjrt::Client& client, std::size_t replica, std::size_t& leaf, std::vector<const pjrt::Buffer*>& list,
             const Given& given) {
      detail::for_each_leaf<false>(replica, given, [&]<class Leaf>(const Leaf& each, auto) {
        using T = detail::ElementOfLeaf<Leaf>;
        const detail::StepForm::Leaf& form = program_.form.leaves()[leaf];
        const bool is_short = form.has_rows && rows_[replica] < program_.rows;
        if constexpr (Reducible<Leaf>) {
          buffers_.push_back(pjrt::upload(client, replica, TensorView<const T>{&each, Shape{}}));
        } else if (is_short) {
          Tensor<T> padded{form.shape.stacked(program_.rows)};
          std::fill_n(std::copy_n(each.data(), each.size(), padded.data()), padded.size() - each.size(), T{});
          buffers_.push_back(pjrt::upload(client, replica, padded));
        } else {
          pjrt::Upload started = pjrt::start_upload(client, replica, TensorView<const T>{each});
          buffers_.push_back(std::move(started.buffer));
          events_.push_back(std::move(started.transfer));
        }
        list.push_back(&buffers_.back());
        ++leaf;
      });
    }
    void tell_rows(const pjrt::Client& client) {
      std::vector<pjrt::Buffer> row_numbers;
      std::int32_t before = 0;
      for (std::size_t replica = 0; replica < rows_.size(); ++replica) {
        const auto rows = static_cast<std::int32_t>(rows_[replica]);
        row_numbers.push_back(pjrt::upload(client, replica, Tensor<std::int32_t>{Shape{2}, {rows, before}}));
        before += rows;
      }
      program_.row_numbers = std::move(row_numbers);
      program_.rows_told = rows_;
    }

    Program& program_;
    const std::vector<std::size_t>& rows_;
    std::deque<pjrt::Buffer> buffers_;
    std::vector<pjrt::Event> events_;
  };

  template <class Result>
  [[nodiscard]] auto host_results([[maybe_unused]] const Program& program,
                                  [[maybe_unused]] std::vector<std::vector<pjrt::Buffer>>& results,
                                  [[maybe_unused]] const std::vector<std::size_t>& rows) const {
    if constexpr (!std::is_void_v<Result>) {
      const auto of_replica = [&](std::size_t replica) {
        std::size_t number = program.written.size();
        return detail::HostForm<Result>::of([&] { return std::move(results[replica][number++]); }, rows[replica]);
      };
      if constexpr (S::wraps_values)
        return regroup(PerReplica<decltype(of_replica(0))>(replicas(), of_replica));
      else
        return of_replica(0);
    }
  }

  S* strategy_;
  Step step_;
  SourceLine line_;
  std::size_t most_forms_;
  std::size_t forms_ = 0;
  std::optional<hlo::CompileCache> cache_;
  std::deque<Program> programs_;
};

namespace detail {

template <>
struct StepOn<Xla> {
  template <class S, class Step>
  [[nodiscard]] static CompiledStep<S, Step> make(S& strategy, Step step, const CompileOptions& options,
                                                  SourceLine line) {
    return CompiledStep<S, Step>{strategy, std::move(step), options, line};
  }
};

}  // namespace detail

}  // namespace dist
