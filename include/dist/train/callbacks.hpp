#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/core/track.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn {

/// One epoch of a fit.
struct Epoch {
  std::size_t index = 0;                            ///< from 0
  std::size_t epochs = 1;                           ///< the number at which the fit ends
  std::optional<std::size_t> steps = std::nullopt;  ///< global batches, once they are known (spec Q05)
};

/// The logs of the steps so far. They are gathered from the replicas of this process when asked for, so a step costs
/// nothing for callbacks that do not look, and each process may look when it likes.
class CurrentLogs {
 public:
  using Read = const Logs& (*)(void*);

  CurrentLogs(void* source, Read read, Read read_all) : source_(source), read_(read), read_all_(read_all) {}
  /// Logs of a single process.
  CurrentLogs(void* source, Read read) : CurrentLogs(source, read, read) {}

  /// Valid until the next step.
  [[nodiscard]] const Logs& operator()() const { return read_(source_); }
  /// The logs of the replicas of all processes, the same in each: a collective call of the processes.
  [[nodiscard]] const Logs& of_all_processes() const { return read_all_(source_); }

 private:
  void* source_;
  Read read_;
  Read read_all_;
};

/// The hooks of callbacks, under Keras' names: each is a type with the name of the member function that it calls, and a
/// template `Calling<Fn>` of callbacks that have it alone and call a function.
///
/// | hook | arguments | |
/// |---|---|---|
/// | `on_train_begin` | | of a fit |
/// | `on_epoch_begin` | `const Epoch&` | |
/// | `on_train_batch_begin` | `std::size_t step` | from 0 |
/// | `on_train_batch_end` | `std::size_t step, CurrentLogs` | of the last step of a group (`steps_per_execution`) |
/// | `on_epoch_end` | `const Epoch&, Logs&` | with validation's logs; what it adds, the callbacks behind it and the history get |
/// | `on_train_end` | `const Logs&` | of the last epoch |
/// | `on_test_begin` | `std::optional<std::size_t> steps` | also of a fit's validation, like the following |
/// | `on_test_batch_begin` | `std::size_t step` | |
/// | `on_test_batch_end` | `std::size_t step, CurrentLogs` | |
/// | `on_test_end` | `std::size_t steps, const Logs&` | |
/// | `on_predict_begin` | `std::optional<std::size_t> steps` | |
/// | `on_predict_batch_begin` | `std::size_t step` | |
/// | `on_predict_batch_end` | `std::size_t step` | |
/// | `on_predict_end` | `std::size_t steps` | |
///
/// Each may take the model before these arguments: `void on_epoch_end(auto& model, const nn::Epoch& epoch, nn::Logs& logs)`. One
/// that takes the model and the nn::Callbacks of the fit before them is called after the hooks of that name of all others.
///
/// A callback may say by `static constexpr std::string_view adds_to_logs` which name its on_epoch_end adds to the logs, "" for
/// none. A name to monitor that neither the model nor a callback can log is then refused when the fit begins.
///
/// A callback with `track(visit)`, or `track(model, visit)`, is part of what nn::callbacks::BackupAndRestore saves and restores:
/// see Trackable. It is found by its `static constexpr std::string_view name`, if it has one, and its place among those of the
/// same name.
namespace hooks {

// Whether a class has a member of some name, whatever it takes, shows in a class that has two of that name: naming it is
// ambiguous there.
#define DIST_CALLBACK_HOOK(member)                                                                  \
  template <class C, class... Args>                                                                 \
  concept takes_##member = requires(C & callback, Args & ... args) {                                \
    callback.member(args...);                                                                       \
  };                                                                                                \
  template <class Both>                                                                             \
  concept names_one_##member = requires {                                                           \
    &Both::member;                                                                                  \
  };                                                                                                \
  struct member {                                                                                   \
    template <class C, class... Args>                                                               \
    static constexpr bool takes = takes_##member<C, Args...>;                                       \
    template <class C, class... Args>                                                               \
    static void call(C& callback, Args&... args) {                                                  \
      callback.member(args...);                                                                     \
    }                                                                                               \
    template <class Fn>                                                                             \
    struct Calling {                                                                                \
      Fn function;                                                                                  \
      template <class... Args>                                                                      \
        requires std::invocable<Fn&, Args&...>                                                      \
      void member(Args&... args) { function(args...); }                                             \
    };                                                                                              \
    struct Named {                                                                                  \
      int member;                                                                                   \
    };                                                                                              \
    template <class C>                                                                              \
      requires(std::is_class_v<C> && !std::is_final_v<C>)                                           \
    struct Both : C, Named {};                                                                      \
    template <class C>                                                                              \
    static constexpr bool is_in = [] {                                                              \
      if constexpr (std::is_class_v<C> && !std::is_final_v<C>) return !names_one_##member<Both<C>>; \
      return false;                                                                                 \
    }();                                                                                            \
  }
DIST_CALLBACK_HOOK(on_train_begin);
DIST_CALLBACK_HOOK(on_epoch_begin);
DIST_CALLBACK_HOOK(on_train_batch_begin);
DIST_CALLBACK_HOOK(on_train_batch_end);
DIST_CALLBACK_HOOK(on_epoch_end);
DIST_CALLBACK_HOOK(on_train_end);
DIST_CALLBACK_HOOK(on_test_begin);
DIST_CALLBACK_HOOK(on_test_batch_begin);
DIST_CALLBACK_HOOK(on_test_batch_end);
DIST_CALLBACK_HOOK(on_test_end);
DIST_CALLBACK_HOOK(on_predict_begin);
DIST_CALLBACK_HOOK(on_predict_batch_begin);
DIST_CALLBACK_HOOK(on_predict_batch_end);
DIST_CALLBACK_HOOK(on_predict_end);

/// Names that other libraries have for hooks, and the hook that is meant.
#define DIST_OTHER_HOOK(member, hook)                                                                            \
  template <class Both>                                                                                          \
  concept names_one_##member = requires {                                                                        \
    &Both::member;                                                                                               \
  };                                                                                                             \
  struct member {                                                                                                \
    struct Named {                                                                                               \
      int member;                                                                                                \
    };                                                                                                           \
    template <class C>                                                                                           \
    struct Both : C, Named {};                                                                                   \
    template <class C>                                                                                           \
    static consteval bool refuse() {                                                                             \
      constexpr bool has_no_other_hook = names_one_##member<Both<C>>; /* a shorter sentence than of a concept */ \
      static_assert(has_no_other_hook,                                                                           \
                    "a callback has a member " #member ", which is never called: the hook is " #hook);           \
      return true;                                                                                               \
    }                                                                                                            \
  }
DIST_OTHER_HOOK(on_batch_begin, on_train_batch_begin);
DIST_OTHER_HOOK(on_batch_end, on_train_batch_end);
DIST_OTHER_HOOK(on_train_epoch_begin, on_epoch_begin);
DIST_OTHER_HOOK(on_train_epoch_end, on_epoch_end);
DIST_OTHER_HOOK(on_epoch_start, on_epoch_begin);
DIST_OTHER_HOOK(on_train_start, on_train_begin);
DIST_OTHER_HOOK(on_fit_begin, on_train_begin);
DIST_OTHER_HOOK(on_fit_end, on_train_end);
DIST_OTHER_HOOK(on_validation_begin, on_test_begin);
DIST_OTHER_HOOK(on_validation_end, on_test_end);
DIST_OTHER_HOOK(on_evaluate_begin, on_test_begin);
DIST_OTHER_HOOK(on_evaluate_end, on_test_end);
#undef DIST_CALLBACK_HOOK
#undef DIST_OTHER_HOOK

}  // namespace hooks

namespace detail {
template <class C, class... Hooks>
inline constexpr bool has_one_of = (Hooks::template is_in<std::remove_cvref_t<C>> || ...);

/// Does not compile for a callback with a hook under the name that another library has for it.
template <class C, class... Others>
consteval bool refuse_other_hooks() {
  return (Others::template refuse<C>() && ...);
}
}  // namespace detail

/// Whatever follows training, evaluation or prediction: it has one or more of the `hooks`, and only those that it has are
/// called, in every process, always outside replica functions. It is a class that is not final.
template <class C>
concept Callback = detail::has_one_of<C, hooks::on_train_begin, hooks::on_epoch_begin, hooks::on_train_batch_begin,
                                      hooks::on_train_batch_end, hooks::on_epoch_end, hooks::on_train_end,
                                      hooks::on_test_begin, hooks::on_test_batch_begin, hooks::on_test_batch_end,
                                      hooks::on_test_end, hooks::on_predict_begin, hooks::on_predict_batch_begin,
                                      hooks::on_predict_batch_end, hooks::on_predict_end>;

namespace detail {

template <class C, class Model>
concept TracksWithModel = requires(C& callback, Model& model, dist::detail::AnyVisitor& visit) {
  callback.track(model, visit);
};
template <class C>
concept NamedCallback = requires {
  { C::name } -> std::convertible_to<std::string_view>;
};

template <class C>
concept HasAddsToLogs = requires {
  { C::adds_to_logs } -> std::convertible_to<std::string_view>;
};

/// Whether a callback may add `name` to the logs: each one may that has the hook on_epoch_end and does not say what it adds.
template <class C>
bool may_add_to_logs(std::string_view name) {
  if constexpr (HasAddsToLogs<C>)
    return name == std::string_view{C::adds_to_logs};
  else
    return has_one_of<C, hooks::on_epoch_end>;
}

/// The state that a callback keeps from one epoch to the next, as a part of a walk.
template <class Model, class C>
struct TrackedCallback {
  static constexpr bool may_be_absent = true;

  Model& model;
  C& callback;

  void track(auto& visit) {
    if constexpr (TracksWithModel<C, Model>)
      callback.track(model, visit);
    else
      callback.track(visit);
  }
};

}  // namespace detail

/// Calls each of several callbacks, in order. Resolved at compile time. Refers to them and to the model.
template <class Model, Callback... C>
class Callbacks {
  static_assert(
      (detail::refuse_other_hooks<C, hooks::on_batch_begin, hooks::on_batch_end, hooks::on_train_epoch_begin,
                                  hooks::on_train_epoch_end, hooks::on_epoch_start, hooks::on_train_start,
                                  hooks::on_fit_begin, hooks::on_fit_end, hooks::on_validation_begin,
                                  hooks::on_validation_end, hooks::on_evaluate_begin, hooks::on_evaluate_end>() &&
       ...));

 public:
  explicit Callbacks(Model& model, C&... callbacks) : model_(model), callbacks_(callbacks...) {}

  /// `callbacks.call<hooks::on_epoch_end>(epoch, logs)`.
  template <class Hook, class... Args>
  void call(Args&&... args) {
    each([&](auto& callback) { call_one<Hook>(callback, args...); });
    each([&]<class One>(One& callback) {
      if constexpr (Hook::template takes<One, Model, Callbacks, Args...>) Hook::call(callback, model_, *this, args...);
    });
  }

  /// Whether one of the callbacks may add `name` to the logs.
  [[nodiscard]] static bool may_add_to_logs([[maybe_unused]] std::string_view name) {
    return (detail::may_add_to_logs<C>(name) || ...);
  }

  /// The state that callbacks keep from one epoch to the next, by their names. See Trackable.
  void track(auto& visit) {
    std::vector<std::string_view> names;
    each([&]<class One>(One& callback) {
      if constexpr (Trackable<One> || detail::TracksWithModel<One, Model>) {
        std::string_view name = "callback";
        if constexpr (detail::NamedCallback<One>) name = One::name;
        std::size_t before = 0;  // of that name
        for (const std::string_view other : names)
          if (other == name) ++before;
        names.push_back(name);
        visit(before == 0 ? std::string(name) : concat(name, "_", before),
              detail::TrackedCallback<Model, One>{model_, callback});
      }
    });
  }

 private:
  template <class Call>
  void each(const Call& call) {
    std::apply([&](auto&... callback) { (call(callback), ...); }, callbacks_);
  }
  template <class Hook, class One, class... Args>
  void call_one(One& callback, Args&... args) {
    if constexpr (Hook::template takes<One, Model, Args...>)
      Hook::call(callback, model_, args...);
    else if constexpr (Hook::template takes<One, Args...>)
      Hook::call(callback, args...);
    else
      static_assert(!Hook::template is_in<One> || Hook::template takes<One, Model, Callbacks, Args...>,
                    "a hook of a callback takes the arguments listed at nn::hooks, or the model and these: "
                    "on_epoch_end(const nn::Epoch&, nn::Logs&), or on_epoch_end(auto& model, const nn::Epoch&, "
                    "nn::Logs&)");
  }

  Model& model_;
  std::tuple<C&...> callbacks_;
};
template <class Model, class... C>
Callbacks(Model&, C&...) -> Callbacks<Model, C...>;

/// The test hooks of Callbacks, whatever their types. Refers to them.
class TestCallback {
 public:
  template <class... Types>
  explicit TestCallback(Callbacks<Types...>& callbacks)
      : callbacks_(&callbacks),
        begin_([](void* all, std::optional<std::size_t> steps) {
          of<Types...>(all).template call<hooks::on_test_begin>(steps);
        }),
        batch_begin_(
            [](void* all, std::size_t step) { of<Types...>(all).template call<hooks::on_test_batch_begin>(step); }),
        batch_end_([](void* all, std::size_t step, CurrentLogs logs) {
          of<Types...>(all).template call<hooks::on_test_batch_end>(step, logs);
        }),
        end_([](void* all, std::size_t steps, const Logs& logs) {
          of<Types...>(all).template call<hooks::on_test_end>(steps, logs);
        }) {}

  void on_test_begin(std::optional<std::size_t> steps) { begin_(callbacks_, steps); }
  void on_test_batch_begin(std::size_t step) { batch_begin_(callbacks_, step); }
  void on_test_batch_end(std::size_t step, CurrentLogs logs) { batch_end_(callbacks_, step, logs); }
  void on_test_end(std::size_t steps, const Logs& logs) { end_(callbacks_, steps, logs); }

 private:
  template <class... Types>
  static Callbacks<Types...>& of(void* callbacks) {
    return *static_cast<Callbacks<Types...>*>(callbacks);
  }

  void* callbacks_;
  void (*begin_)(void*, std::optional<std::size_t>);
  void (*batch_begin_)(void*, std::size_t);
  void (*batch_end_)(void*, std::size_t, CurrentLogs);
  void (*end_)(void*, std::size_t, const Logs&);
};

}  // namespace dist::nn
