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
  std::optional<std::size_t> steps = std::nullopt;  ///< global batches, once known (spec Q05)
};

/// The logs up to the current step. Computed from the replicas of this process on demand, so callbacks that do not read
/// them cost nothing, and each process may read them at any time.
class CurrentLogs {
 public:
  /// A function that returns the logs of `source`.
  using Read = const Logs& (*)(void*);

  /// `read` returns the logs of this process, `read_all` the logs of all processes.
  CurrentLogs(void* source, Read read, Read read_all) : source_(source), read_(read), read_all_(read_all) {}
  /// The logs of a single process.
  CurrentLogs(void* source, Read read) : CurrentLogs(source, read, read) {}

  /// Returns the logs, valid until the next step.
  [[nodiscard]] const Logs& operator()() const { return read_(source_); }
  /// Returns the logs of the replicas of all processes, the same in each. A collective call of the processes.
  [[nodiscard]] const Logs& of_all_processes() const { return read_all_(source_); }

 private:
  void* source_;
  Read read_;
  Read read_all_;
};

/// The hooks of callbacks, named like Keras' hooks. Each is a type with the name of the member function that it calls,
/// and a template `Calling<Fn>` of callbacks that have only this hook and call a function.
///
/// | hook | arguments | |
/// |---|---|---|
/// | `on_train_begin` | | of a fit |
/// | `on_epoch_begin` | `const Epoch&` | |
/// | `on_train_batch_begin` | `std::size_t step` | from 0 |
/// | `on_train_batch_end` | `std::size_t step, CurrentLogs` | of the last step of a group (`steps_per_execution`) |
/// | `on_epoch_end` | `const Epoch&, Logs&` | includes validation logs; added values go to later callbacks and the history |
/// | `on_train_end` | `const Logs&` | of the last epoch |
/// | `on_test_begin` | `std::optional<std::size_t> steps` | also in the validation of a fit, like the next three |
/// | `on_test_batch_begin` | `std::size_t step` | |
/// | `on_test_batch_end` | `std::size_t step, CurrentLogs` | |
/// | `on_test_end` | `std::size_t steps, const Logs&` | |
/// | `on_predict_begin` | `std::optional<std::size_t> steps` | |
/// | `on_predict_batch_begin` | `std::size_t step` | |
/// | `on_predict_batch_end` | `std::size_t step` | |
/// | `on_predict_end` | `std::size_t steps` | |
///
/// A hook may take the model before these arguments: `void on_epoch_end(auto& model, const nn::Epoch& epoch, nn::Logs&
/// logs)`. A hook that takes the model and the nn::Callbacks of the fit runs last, after this hook of all other callbacks.
///
/// `static constexpr std::string_view adds_to_logs` declares the name that the on_epoch_end of a callback adds to the
/// logs, "" for none. With that, the start of a fit can reject a monitored name that neither the model nor a callback
/// logs.
///
/// nn::callbacks::BackupAndRestore saves and restores callbacks with `track(visit)` or `track(model, visit)`, see
/// Trackable. Their key is their `static constexpr std::string_view name`, if any, and their position among those with
/// the same name.
namespace hooks {

// A class has a member of a given name if the name is ambiguous in a class that also inherits it from another base.
#define DIST_CALLBACK_HOOK(member, signature)                                                       \
  template <class C, class... Args>                                                                 \
  concept takes_##member = requires(C & callback, Args & ... args) {                                \
    callback.member(args...);                                                                       \
  };                                                                                                \
  template <class Both>                                                                             \
  concept names_one_##member = requires {                                                           \
    &Both::member;                                                                                  \
  };                                                                                                \
  struct member {                                                                                   \
    using Signature = signature;                                                                    \
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
DIST_CALLBACK_HOOK(on_train_begin, void());
DIST_CALLBACK_HOOK(on_epoch_begin, void(const Epoch&));
DIST_CALLBACK_HOOK(on_train_batch_begin, void(std::size_t));
DIST_CALLBACK_HOOK(on_train_batch_end, void(std::size_t, CurrentLogs));
DIST_CALLBACK_HOOK(on_epoch_end, void(const Epoch&, Logs&));
DIST_CALLBACK_HOOK(on_train_end, void(const Logs&));
DIST_CALLBACK_HOOK(on_test_begin, void(std::optional<std::size_t>));
DIST_CALLBACK_HOOK(on_test_batch_begin, void(std::size_t));
DIST_CALLBACK_HOOK(on_test_batch_end, void(std::size_t, CurrentLogs));
DIST_CALLBACK_HOOK(on_test_end, void(std::size_t, const Logs&));
DIST_CALLBACK_HOOK(on_predict_begin, void(std::optional<std::size_t>));
DIST_CALLBACK_HOOK(on_predict_batch_begin, void(std::size_t));
DIST_CALLBACK_HOOK(on_predict_batch_end, void(std::size_t));
DIST_CALLBACK_HOOK(on_predict_end, void(std::size_t));

/// Other libraries' names of hooks, and the corresponding hooks.
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

/// Rejects, at compile time, a callback with a hook under another library's name.
template <class C, class... Others>
consteval bool refuse_other_hooks() {
  return (Others::template refuse<C>() && ...);
}
}  // namespace detail

/// An observer of training, evaluation or prediction with at least one of the `hooks`. Only its own hooks are called,
/// in every process, outside replica functions. It must be a class that is not final.
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

/// True if a callback may add `name` to the logs. Without `adds_to_logs`, every callback with the hook on_epoch_end
/// may.
template <class C>
bool may_add_to_logs(std::string_view name) {
  if constexpr (HasAddsToLogs<C>)
    return name == std::string_view{C::adds_to_logs};
  else
    return has_one_of<C, hooks::on_epoch_end>;
}

/// The state of a callback, to be saved with a checkpoint.
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

/// The two rounds in which a hook is called. The last one is for callbacks that take nn::Callbacks.
enum class HookTurn : bool { first, last };

/// Calls several callbacks in order, resolved at compile time. Refers to them and to the model.
template <class Model, Callback... C>
class Callbacks {
  static_assert(
      (detail::refuse_other_hooks<C, hooks::on_batch_begin, hooks::on_batch_end, hooks::on_train_epoch_begin,
                                  hooks::on_train_epoch_end, hooks::on_epoch_start, hooks::on_train_start,
                                  hooks::on_fit_begin, hooks::on_fit_end, hooks::on_validation_begin,
                                  hooks::on_validation_end, hooks::on_evaluate_begin, hooks::on_evaluate_end>() &&
       ...));

 public:
  /// The callbacks and the model must outlive this object.
  explicit Callbacks(Model& model, C&... callbacks) : model_(model), callbacks_(callbacks...) {}

  /// Calls a hook: `callbacks.call<hooks::on_epoch_end>(epoch, logs)`.
  template <class Hook, class... Args>
  void call(Args&&... args) {
    call_in<Hook>(HookTurn::first, args...);
    call_in<Hook>(HookTurn::last, args...);
  }
  /// Calls a hook in one of the two rounds.
  template <class Hook, class... Args>
  void call_in(HookTurn turn, Args&&... args) {
    each([&]<class One>(One& callback) {
      if constexpr (Hook::template takes<One, Model, Callbacks, Args...>)
        if (turn == HookTurn::last) Hook::call(callback, model_, *this, args...);
      if (turn == HookTurn::first) call_one<Hook>(callback, args...);
    });
  }

  /// True if one of the callbacks may add `name` to the logs.
  [[nodiscard]] static bool may_add_to_logs([[maybe_unused]] std::string_view name) {
    return (detail::may_add_to_logs<C>(name) || ...);
  }

  /// Visits the state of the callbacks, by their names. See Trackable.
  void track(auto& visit) {
    std::vector<std::string_view> names;
    each([&]<class One>(One& callback) {
      if constexpr (Trackable<One> || detail::TracksWithModel<One, Model>) {
        std::string_view name = "callback";
        if constexpr (detail::NamedCallback<One>) name = One::name;
        std::size_t before = 0;  // with the same name
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
      static_assert(
          !Hook::template is_in<One> || Hook::template takes<One, Model, Callbacks, Args...>,
          "a hook of a callback takes the arguments listed at nn::hooks, or the model followed by these: "
          "on_epoch_end(const nn::Epoch&, nn::Logs&), or on_epoch_end(auto& model, const nn::Epoch&, nn::Logs&)");
  }

  Model& model_;
  std::tuple<C&...> callbacks_;
};
/// Deduces the types.
template <class Model, class... C>
Callbacks(Model&, C&...) -> Callbacks<Model, C...>;

namespace detail {

/// Type-erased access to some hooks of nn::Callbacks. Refers to them.
template <class... Hooks>
class AnyCallbacks {
 public:
  template <class... Types>
  explicit AnyCallbacks(Callbacks<Types...>& callbacks)
      : callbacks_(&callbacks), functions_(&functions_of<Callbacks<Types...>>) {}

  /// Calls a hook, like Callbacks.
  template <class Hook, class... Args>
  void call(Args&&... args) const {
    call_in<Hook>(HookTurn::first, args...);
    call_in<Hook>(HookTurn::last, args...);
  }
  template <class Hook, class... Args>
  void call_in(HookTurn turn, Args&&... args) const {
    static_cast<const Function<Hook>*>(functions_)->call(callbacks_, turn, args...);
  }

 private:
  template <class Hook, class Signature = typename Hook::Signature>
  struct Function;
  template <class Hook, class... Args>
  struct Function<Hook, void(Args...)> {
    void (*call)(void* callbacks, HookTurn turn, Args... args);

    template <class All>
    static void call_of(void* callbacks, HookTurn turn, Args... args) {
      static_cast<All*>(callbacks)->template call_in<Hook>(turn, args...);
    }
  };
  struct Functions : Function<Hooks>... {};
  template <class All>
  static constexpr Functions functions_of{Function<Hooks>{Function<Hooks>::template call_of<All>}...};

  void* callbacks_;
  const Functions* functions_;
};

/// The hooks of a fit except those for its validation.
using FitCallback = AnyCallbacks<hooks::on_train_begin, hooks::on_epoch_begin, hooks::on_train_batch_begin,
                                 hooks::on_train_batch_end, hooks::on_epoch_end, hooks::on_train_end>;
using PredictCallback = AnyCallbacks<hooks::on_predict_begin, hooks::on_predict_batch_begin,
                                     hooks::on_predict_batch_end, hooks::on_predict_end>;

}  // namespace detail

/// The hooks of an evaluation, or of the validation in a fit.
using TestCallback = detail::AnyCallbacks<hooks::on_test_begin, hooks::on_test_batch_begin, hooks::on_test_batch_end,
                                          hooks::on_test_end>;

}  // namespace dist::nn
