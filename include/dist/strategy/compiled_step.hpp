#pragma once

#include <algorithm>
#include <array>
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
#include <dist/context/run_here.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/error.hpp>
#include <dist/core/never.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/source_line.hpp>
#include <dist/core/specialization.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/text.hpp>
#include <dist/core/warning.hpp>
#include <dist/data/example.hpp>
#include <dist/device/pjrt/xla.hpp>
#include <dist/hlo/compile_cache.hpp>
#include <dist/hlo/dynamic.hpp>
#include <dist/hlo/pending_number.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/strategy/trace_context.hpp>

namespace dist {

namespace detail {

/// What a step sees of an argument of its calls: traced arrays in the place of numbers and tensors.
template <class Given>
struct TracedForm {};
template <Reducible T>
struct TracedForm<T> {
  using Type = hlo::Traced<T>;
};
template <class T>
struct TracedForm<Tensor<T>> {
  using Type = hlo::Dynamic<T>;
};
template <class T>
struct TracedForm<TensorView<T>> {
  using Type = hlo::Dynamic<std::remove_const_t<T>>;
};
template <class Given>
concept HasTracedForm = requires {
  typename TracedForm<Given>::Type;
};

/// Whether every member of an argument has a traced form.
template <class Given>
inline constexpr bool is_step_argument = HasTracedForm<Given>;
template <class... Members>
inline constexpr bool are_step_arguments = (is_step_argument<std::remove_cvref_t<Members>> && ...);
template <class X, class Y>
inline constexpr bool is_step_argument<data::Example<X, Y>> = are_step_arguments<X, Y>;
template <class... Members>
inline constexpr bool is_step_argument<std::tuple<Members...>> = are_step_arguments<Members...>;
template <class First, class Second>
inline constexpr bool is_step_argument<std::pair<First, Second>> = are_step_arguments<First, Second>;
template <class Member, std::size_t N>
inline constexpr bool is_step_argument<std::array<Member, N>> = is_step_argument<Member>;

/// Calls `use(leaf)` for each number and tensor of an argument, in order.
template <class Given, class Use>
void for_each_leaf(const Given& given, Use&& use) {
  if constexpr (Structure<Given> || is_specialization<Given, data::Example>)
    for_each_member(given, [&](const auto& member) { for_each_leaf(member, use); });
  else
    use(given);
}

/// `given` with `map(leaf)` in the place of each number and tensor.
template <class Given, class Map>
[[nodiscard]] auto map_leaves(const Given& given, Map&& map) {
  if constexpr (Structure<Given>) {
    return map_structure(given, [&](const auto& member) { return map_leaves(member, map); });
  } else if constexpr (is_specialization<Given, data::Example>) {
    auto x = map_leaves(given.x, map);
    return data::Example{std::move(x), map_leaves(given.y, map)};
  } else {
    return map(given);
  }
}

/// The arguments of a program in the places of an argument's leaves, in order.
class LeafArguments {
 public:
  explicit LeafArguments(std::span<const hlo::Value> values) : next_(values.begin()) {}
  template <class Leaf>
  [[nodiscard]] auto operator()(const Leaf&) {
    return typename TracedForm<Leaf>::Type{*next_++};
  }

 private:
  std::span<const hlo::Value>::iterator next_;
};

/// Whether a step may return it: traced arrays, or nothing.
template <class Result>
inline constexpr bool is_step_result = TracedValue<Result> || std::is_void_v<Result>;
template <class... Members>
inline constexpr bool is_step_result<std::tuple<Members...>> = (is_step_result<Members> && ...);
template <class First, class Second>
inline constexpr bool is_step_result<std::pair<First, Second>> = is_step_result<First>&& is_step_result<Second>;
template <class Member, std::size_t N>
inline constexpr bool is_step_result<std::array<Member, N>> = is_step_result<Member>;

/// What a result of a step is on the host: `of(next, rows)` makes it of the buffers that `next()` gives in order, of a
/// replica whose batch has so many rows.
template <class Result>
struct HostForm;
template <class T>
struct HostForm<hlo::Traced<T>> {
  template <class Next>
  [[nodiscard]] static hlo::PendingNumber<T> of(Next&& next, std::size_t) {
    return hlo::PendingNumber<T>{next()};
  }
};
template <class T, std::size_t First, std::size_t... Extents>
struct HostForm<hlo::Traced<T, First, Extents...>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t rows) {
    Tensor<T> values = next().template download<T>();
    if (First == hlo::batch) values.resize(values.shape().row().stacked(rows));
    return values;
  }
};
template <class T>
struct HostForm<hlo::Dynamic<T>> {
  template <class Next>
  [[nodiscard]] static Tensor<T> of(Next&& next, std::size_t) {
    return next().template download<T>();
  }
};
template <Structure Result>
struct HostForm<Result> {
  template <class Next>
  [[nodiscard]] static auto of(Next&& next, std::size_t rows) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (is_array<Result>) {
        using Host = decltype(HostForm<typename Result::value_type>::of(next, rows));
        return std::array<Host, sizeof...(I)>{
            (static_cast<void>(I), HostForm<typename Result::value_type>::of(next, rows))...};
      } else {
        using Host =
            typename StructureLike<Result,
                                   decltype(HostForm<std::tuple_element_t<I, Result>>::of(next, rows))...>::Type;
        return Host{HostForm<std::tuple_element_t<I, Result>>::of(next, rows)...};
      }
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>{});
  }
};

inline constinit Warning compiled_again{};

/// Throws InvalidArgument unless the replicas of a strategy are on the first devices of the client, each on its own.
template <class S>
void require_first_devices(const S& strategy) {
  const std::vector<std::string> devices = strategy.worker_devices();
  for (std::size_t replica = 0; replica < devices.size(); ++replica)
    if (devices[replica] != Xla::device_name(replica))
      throw InvalidArgument("A step cannot be compiled for these devices",
                            text("replica ", replica, " of ", strategy.describe(), " is on ", devices[replica],
                                 ", and a program has its replicas on the first devices, each on one"),
                            "Say how many replicas there are, not more than devices, and do not name these");
}

}  // namespace detail

/// A step that XLA compiles for the replicas of a strategy on Xla devices: `strategy.compile(step)`. The first call traces
/// the step, by calling it with a TraceContext and traced arrays; XLA makes a program of what it did, which this call and
/// all others run on the devices. What the step reads and writes of variables lies there from call to call.
///
/// Arguments are as for `strategy.run`. A tensor of a PerReplica has the rows of that replica's batch on its first axis,
/// whose extent is hlo::batch in the step; a batch of fewer rows than the program was compiled for is padded, and losses,
/// metrics and statistics of batches count the rows that there are (`replica.rows()`). Under a strategy of one replica that
/// wraps no values, every tensor is of the batch. Numbers and tensors are arguments of the program; what the step captures,
/// such as a number of the host, is a constant in it.
///
/// Returns what `run` does, where the step returns traced arrays: a hlo::PendingNumber of a number, for which only those
/// wait who ask, and a Tensor of an array.
template <class S, class Step>
class CompiledStep {
  static_assert(
      !S::Store::shared,
      "a compiled step needs a copy of every variable on each device, and this strategy keeps one for all: use "
      "dist::Tpu<> or Mirrored<XlaAllReduce>");
  static_assert(CollectivesOfOne<typename S::Workers::Between>,
                "a compiled step is for the replicas of one process: use dist::Tpu<> or Mirrored<XlaAllReduce>");

 public:
  /// `line` is where the step is compiled, which XLA's errors name. Throws InvalidArgument where the strategy's devices are
  /// not the first ones of the client, one for each replica.
  CompiledStep(S& strategy, Step step, const CompileOptions& options = {}, SourceLine line = here())
      : strategy_(&strategy), step_(std::move(step)), line_(line), most_programs_(options.most_programs) {
    detail::require_first_devices(strategy);
    std::string folder = options.cache;
    if (const char* const named = std::getenv("DIST_COMPILE_CACHE"); folder.empty() && named != nullptr) folder = named;
    if (!folder.empty()) cache_.emplace(std::move(folder));
  }

  /// Throws WrongStrategy in replica functions and for values of another strategy; ShapeMismatch where tensors of a batch
  /// have different numbers of rows; InvalidArgument where the step would need one program too many; what tracing the step
  /// throws, ProgramRefused, and PjrtError.
  template <class... Args>
  auto operator()(const Args&... args) {
    constexpr bool takes = (detail::is_step_argument<OfReplica<Args>> && ...);
    static_assert(takes,
                  "a compiled step takes numbers, tensors, and tuples, pairs, arrays and dist::data::Example of these");
    if constexpr (takes) {
      constexpr bool returns = detail::is_step_result<ResultOf<Args...>>;
      static_assert(returns, "a compiled step returns traced arrays, tuples, pairs and arrays of these, or nothing");
      if constexpr (returns) return call(args...);
    }
  }

  /// How many programs there are.
  [[nodiscard]] std::size_t programs() const noexcept { return programs_.size(); }

 private:
  using Context = TraceContext<S>;
  using Resident = pjrt::ManagedMemory::Resident;

  /// What a program is for: the types of the arguments, and the shapes of their leaves; of those with the rows of a batch,
  /// the shape of a row.
  struct Form {
    const void* types;
    std::vector<Shape> shapes = {};
    std::vector<bool> have_rows = {};
    std::vector<std::size_t> rows = {};  // of the batch of each replica
    [[nodiscard]] std::size_t most_rows() const { return *std::max_element(rows.begin(), rows.end()); }
  };
  /// A part of a variable, by their numbers.
  struct Written {
    std::size_t variable, part;
  };
  struct Program {
    Form form;
    std::size_t rows;
    pjrt::Executable executable;
    std::vector<std::vector<Resident*>> variables;  // of each replica
    std::vector<Written> written;                   // whose new elements are the first results
    std::vector<detail::HostNumbers> numbers;
    std::vector<detail::HostChoice> choices;
    std::vector<std::function<void()>> beforehand;
    std::vector<std::function<void()>> afterwards;
    bool asks_rows;                           // whether row_numbers are an argument
    std::vector<std::size_t> rows_told = {};  // of each replica, in row_numbers
    std::vector<pjrt::Buffer> row_numbers = {};
  };
  template <class... Args>
  static constexpr char types_of{};

  /// An argument, as one replica sees it.
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
                          "a call is one for all replicas, and replica functions run on each",
                          "Call it where strategy.run is called, or call the step itself");
    (require_value_per_replica(replicas(), args, "a compiled step was given"), ...);
    Form form = form_of(args...);
    Program& program = program_for(form, args...);
    for (const auto& call : program.beforehand) call();
    Transfers transfers{program, form.rows};
    std::vector<std::vector<pjrt::Buffer>> results = program.executable.execute(transfers.lists(client(), args...));
    for (std::size_t replica = 0; replica < replicas(); ++replica)
      for (std::size_t i = 0; i < program.written.size(); ++i)
        program.variables[replica][program.written[i].variable]->replace(program.written[i].part,
                                                                         std::move(results[replica][i]));
    for (const auto& call : program.afterwards) call();
    transfers.wait();  // the caller may change what it gave
    return host_results<ResultOf<Args...>>(program, results, form.rows);
  }

  [[nodiscard]] std::size_t replicas() const noexcept { return strategy_->num_local_replicas(); }
  [[nodiscard]] const pjrt::Client& client() const { return strategy_->template memory_on<Xla>()->client(); }

  /// Whether tensors of such an argument have the rows of a batch.
  template <class Given>
  static constexpr bool is_batch = !S::wraps_values || detail::holds_per_replica<Given>;

  template <class Leaf>
  [[nodiscard]] static Shape shape_of(const Leaf& leaf) {
    if constexpr (Reducible<Leaf>)
      return {};
    else
      return leaf.shape();
  }

  template <class... Args>
  [[nodiscard]] Form form_of(const Args&... args) const {
    Form form{.types = &types_of<Args...>};
    form.rows.assign(replicas(), 0);
    (add_to(form, args), ...);
    return form;
  }
  template <class Given>
  void add_to(Form& form, const Given& given) const {
    const std::size_t first = form.shapes.size();
    for (std::size_t replica = 0; replica < replicas(); ++replica) {
      std::size_t number = first;
      detail::for_each_leaf(select_replica(replica, given), [&](const auto& leaf) {
        const Shape shape = shape_of(leaf);
        const bool has_rows = is_batch<Given> && shape.rank() > 0;
        if (replica == 0) {
          form.shapes.push_back(has_rows ? shape.row() : shape);
          form.have_rows.push_back(has_rows);
        }
        if (has_rows) add_rows(form, replica, number, first, shape);
        ++number;
      });
    }
  }
  /// The first leaf of a batch says how many rows there are. A batch without rows may not know the shape of one.
  static void add_rows(Form& form, std::size_t replica, std::size_t number, std::size_t first, const Shape& shape) {
    std::size_t& rows = form.rows[replica];
    if (number == first && rows == 0) rows = shape[0];
    if (shape[0] != rows)
      throw ShapeMismatch("The tensors of a batch have different numbers of rows",
                          text("on replica ", replica, " one has ", rows, " and another one ", shape[0]),
                          "Give tensors with as many rows each, and what is no batch without a PerReplica");
    if (rows == 0) return;
    const bool is_known = std::any_of(form.rows.begin(), form.rows.begin() + static_cast<std::ptrdiff_t>(replica),
                                      [](std::size_t before) { return before > 0; });
    if (!is_known) form.shapes[number] = shape.row();
    if (form.shapes[number] != shape.row())
      throw ShapeMismatch("The batches of the replicas have different shapes",
                          text("rows of shape ", to_string(form.shapes[number]), " and, on replica ", replica, ", ",
                               to_string(shape.row())),
                          "Give every replica rows of one shape");
  }

  template <class... Args>
  [[nodiscard]] Program& program_for(Form& form, const Args&... args) {
    const bool is_empty =
        form.most_rows() == 0 && std::find(form.have_rows.begin(), form.have_rows.end(), true) != form.have_rows.end();
    bool is_another_form = !programs_.empty();
    for (Program& program : programs_) {
      if (program.form.types != form.types || (!is_empty && program.form.shapes != form.shapes) ||
          form.most_rows() > program.rows)
        continue;
      is_another_form = false;
      if (std::all_of(program.choices.begin(), program.choices.end(),
                      [](const detail::HostChoice& choice) { return choice.now() == choice.taken; }))
        return program;
    }
    if (is_empty)
      throw InvalidArgument("A step cannot be compiled for a batch without rows",
                            "the shapes of its tensors and their greatest number of rows are not known yet",
                            "Call the step with a batch that has rows first");
    if (programs_.size() == most_programs_)
      throw InvalidArgument(
          text("A compiled step would need more than ", most_programs_, " programs"),
          text("the last one is for ", described(programs_.back().form), ", and this call has ", described(form)),
          "Give batches of one shape, the largest first, or more CompileOptions::most_programs");
    if (is_another_form && !detail::compiled_again.was_given())
      detail::compiled_again.give(text("A step is compiled once more, for ", described(form), " instead of ",
                                       described(programs_.front().form),
                                       ". Batches of one shape, the largest first, need one program. "
                                       "DIST_WARNINGS=0 silences this."));
    return programs_.emplace_back(compiled(form, args...));
  }
  [[nodiscard]] static std::string described(const Form& form) {
    std::string shapes;
    for (std::size_t leaf = 0; leaf < form.shapes.size(); ++leaf)
      shapes += text(leaf == 0 ? "" : ", ",
                     to_string(form.have_rows[leaf] ? form.shapes[leaf].stacked(form.most_rows()) : form.shapes[leaf]));
    return shapes.empty() ? "no tensors" : shapes;
  }

  template <class... Args>
  [[nodiscard]] Program compiled(const Form& form, const Args&... args) {
    const std::size_t rows = form.most_rows();
    hlo::Trace trace{replicas(), rows == 0 ? std::nullopt : std::optional{rows}};
    const hlo::Scope scope{"step", line_};
    std::vector<hlo::Value> leaves;
    [[maybe_unused]] const auto add_leaf = [&]<class Leaf>(const Leaf&) {
      const Shape& shape = form.shapes[leaves.size()];
      leaves.push_back(trace.argument(
          {hlo::element_kind<ElementOf<Leaf>>, form.have_rows[leaves.size()] ? shape.stacked(rows) : shape}));
    };
    (detail::for_each_leaf(select_replica(0, args), add_leaf), ...);
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
    for (const detail::HostNumbers& numbers : step.numbers) arguments.push_back(numbers.argument);
    results.insert(results.end(), returned.begin(), returned.end());

    const std::string module = trace.module(arguments, results, donations);
    Program program{
        form,
        rows,
        cache_ ? cache_->executable(client(), module, replicas()) : pjrt::Executable{client(), module, replicas()},
        std::vector<std::vector<Resident*>>(replicas()),
        std::move(written),
        std::move(step.numbers),
        std::move(step.choices),
        std::move(step.beforehand),
        std::move(step.afterwards),
        step.row_numbers.has_value()};
    for (std::size_t replica = 0; replica < replicas(); ++replica)
      for (const detail::TracedVariable& variable : step.variables)
        program.variables[replica].push_back(&variable.resident(replica));
    return program;
  }
  template <class Leaf>
  struct ElementOfLeaf {
    using Type = std::remove_const_t<typename Leaf::Element>;
  };
  template <Reducible Leaf>
  struct ElementOfLeaf<Leaf> {
    using Type = Leaf;
  };
  template <class Leaf>
  using ElementOf = typename ElementOfLeaf<Leaf>::Type;

  /// What the step returns, as values in order.
  template <class... Args>
  [[nodiscard]] std::vector<hlo::Value> call_traced(detail::StepTrace& step, std::span<const hlo::Value> leaves,
                                                    const Args&... args) {
    Context context{*strategy_, step};
    detail::LeafArguments next{leaves};
    std::tuple<TracedOf<Args>...> traced{detail::map_leaves(select_replica(0, args), next)...};  // in order
    std::vector<hlo::Value> returned;
    std::apply(
        [&](auto&... each) {
          if constexpr (std::is_void_v<ResultOf<Args...>>)
            step_(context, each...);
          else
            detail::for_each_leaf(step_(context, each...),
                                  [&](const auto& array) { returned.push_back(array.value()); });
        },
        traced);
    return returned;
  }

  /// The arguments of one call, on the devices of the replicas.
  class Transfers {
   public:
    Transfers(Program& program, const std::vector<std::size_t>& rows) : program_(program), rows_(rows) {}

    template <class... Args>
    [[nodiscard]] std::vector<std::vector<const pjrt::Buffer*>> lists(const pjrt::Client& client, const Args&... args) {
      if (program_.asks_rows && program_.rows_told != rows_) tell_rows(client);
      std::vector<std::vector<const pjrt::Buffer*>> lists(rows_.size());
      std::vector<Tensor<float>> numbers;
      for (const detail::HostNumbers& of_host : program_.numbers) numbers.push_back(of_host.make());
      for (std::size_t replica = 0; replica < rows_.size(); ++replica) {
        auto& list = lists[replica];
        for (Resident* const variable : program_.variables[replica]) variable->on_device(list);
        [[maybe_unused]] std::size_t leaf = 0;
        (add(client, replica, leaf, list, select_replica(replica, args)), ...);
        if (program_.asks_rows) list.push_back(&program_.row_numbers[replica]);
        for (const Tensor<float>& each : numbers)
          list.push_back(&buffers_.emplace_back(pjrt::upload(client, replica, each)));
      }
      return lists;
    }
    void wait() const {
      for (const pjrt::Event& event : events_) event.wait();
    }

   private:
    template <class Given>
    void add(const pjrt::Client& client, std::size_t replica, std::size_t& leaf, std::vector<const pjrt::Buffer*>& list,
             const Given& given) {
      detail::for_each_leaf(given, [&]<class Leaf>(const Leaf& each) {
        using T = ElementOf<Leaf>;
        const bool is_short = program_.form.have_rows[leaf] && rows_[replica] < program_.rows;
        if constexpr (Reducible<Leaf>) {
          buffers_.push_back(pjrt::upload(client, replica, TensorView<const T>{&each, Shape{}}));
        } else if (is_short) {
          Tensor<T> padded{program_.form.shapes[leaf].stacked(program_.rows)};
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
      program_.row_numbers.clear();
      std::int32_t before = 0;
      for (std::size_t replica = 0; replica < rows_.size(); ++replica) {
        const auto rows = static_cast<std::int32_t>(rows_[replica]);
        program_.row_numbers.push_back(pjrt::upload(client, replica, Tensor<std::int32_t>{Shape{2}, {rows, before}}));
        before += rows;
      }
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
  std::size_t most_programs_;
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
