#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/pjrt/api.hpp>

namespace dist::pjrt {

/// A key-value store that the processes of a job share, such as dist::KeyValueStore. Thread-safe.
/// - `process()`, `processes()`: the rank of this process, and their number.
/// - `get(key, timeout)`: waits for the value of the key; throws DeadlineExceeded.
/// - `try_get(key)`: returns the value, if set.
/// - `put(key, value)`: throws InvalidArgument if the key has another value.
template <class S>
concept SharesValues = requires(S& store, const S& seen, std::string_view key, std::chrono::milliseconds timeout) {
  { seen.process() } -> std::convertible_to<std::size_t>;
  { seen.processes() } -> std::convertible_to<std::size_t>;
  { store.get(key, timeout) } -> std::convertible_to<std::string>;
  { store.try_get(key) } -> std::convertible_to<std::optional<std::string>>;
  store.put(key, key);
};

/// The processes of a job whose plugins combine their devices. Each process has a separate client. The plugins exchange
/// their devices and addresses through the store, when clients are created and later.
class Processes {
 public:
  /// This process alone.
  Processes() = default;
  /// The processes that share `store`.
  template <SharesValues Store>
  Processes(std::shared_ptr<Store> store)
      : index_(store->process()),
        count_(store->processes()),
        get_([store](std::string_view key, std::chrono::milliseconds timeout) { return store->get(key, timeout); }),
        try_get_([store](std::string_view key) { return store->try_get(key); }),
        put_([store](std::string_view key, std::string_view value) { store->put(key, value); }) {}

  /// The rank of this process.
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  /// The number of processes.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// True if the processes exchange values, false for one process alone.
  [[nodiscard]] bool share_values() const noexcept { return static_cast<bool>(get_); }

  [[nodiscard]] std::string get(std::string_view key, std::chrono::milliseconds timeout) const {
    return get_(key, timeout);
  }
  [[nodiscard]] std::optional<std::string> try_get(std::string_view key) const { return try_get_(key); }
  void put(std::string_view key, std::string_view value) const { put_(key, value); }

 private:
  std::size_t index_ = 0, count_ = 1;
  ::dist::detail::UniqueFunction<std::string, std::string_view, std::chrono::milliseconds> get_;
  ::dist::detail::UniqueFunction<std::optional<std::string>, std::string_view> try_get_;
  ::dist::detail::UniqueFunction<void, std::string_view, std::string_view> put_;
};

namespace detail {

/// Callbacks by which a plugin accesses the store. They point to this object, so it does not move, and lives as long as
/// the client.
class KeyValueCallbacks {
 public:
  /// `timeout` limits all waits of the plugin (0: only the plugin's timeouts apply).
  KeyValueCallbacks(Processes processes, std::chrono::nanoseconds timeout)
      : processes_(std::move(processes)),
        longest_(timeout.count() == 0 ? std::chrono::milliseconds::max()
                                      : std::chrono::duration_cast<std::chrono::milliseconds>(timeout)) {}
  KeyValueCallbacks(const KeyValueCallbacks&) = delete;
  KeyValueCallbacks& operator=(const KeyValueCallbacks&) = delete;

  void give_to(PJRT_Client_Create_Args& arguments) noexcept {
    arguments.kv_get_callback = get;
    arguments.kv_try_get_callback = try_get;
    arguments.kv_put_callback = put;
    arguments.kv_get_user_arg = arguments.kv_try_get_user_arg = arguments.kv_put_user_arg = this;
  }

  /// Rethrows the store's last exception if the plugin failed with the error code for it.
  void rethrow(PJRT_Error_Code code) const {
    const std::lock_guard lock{mutex_};
    if (last_ && last_code_ == code) std::rethrow_exception(last_);
  }

 private:
  static PJRT_Error* get(PJRT_KeyValueGetCallback_Args* arguments) noexcept {
    return answer(*arguments, [&](const KeyValueCallbacks& self, std::string_view key) {
      const std::chrono::milliseconds wanted{arguments->timeout_in_ms};
      give(*arguments, self.processes_.get(key, std::min(wanted, self.longest_)));
    });
  }
  static PJRT_Error* try_get(PJRT_KeyValueTryGetCallback_Args* arguments) noexcept {
    return answer(*arguments, [&](const KeyValueCallbacks& self, std::string_view key) {
      const std::optional<std::string> value = self.processes_.try_get(key);
      if (!value) throw NotPut{};
      give(*arguments, *value);
    });
  }
  static PJRT_Error* put(PJRT_KeyValuePutCallback_Args* arguments) noexcept {
    return answer(*arguments, [&](const KeyValueCallbacks& self, std::string_view key) {
      self.processes_.put(key, {arguments->value, arguments->value_size});
    });
  }

  /// Not an error.
  struct NotPut {};

  /// Calls `act`, and converts exceptions to errors of the plugin.
  template <class Arguments, class Act>
  static PJRT_Error* answer(Arguments& arguments, Act&& act) noexcept {
    auto& self = *static_cast<KeyValueCallbacks*>(arguments.user_arg);
    const std::string_view key{arguments.key, arguments.key_size};
    const auto error = [&](PJRT_Error_Code code, std::string_view message) {
      return (*arguments.callback_error)(code, message.data(), message.size());
    };
    const auto fail = [&](PJRT_Error_Code code, std::string_view message) {
      const std::lock_guard lock{self.mutex_};
      self.last_ = std::current_exception();
      self.last_code_ = code;
      return error(code, message);
    };
    try {
      act(self, key);
      return nullptr;
    } catch (const NotPut&) {
      return error(PJRT_Error_Code_NOT_FOUND, key);
    } catch (const DeadlineExceeded& late) {
      return fail(PJRT_Error_Code_DEADLINE_EXCEEDED, late.what());
    } catch (const Unavailable& gone) {
      return fail(PJRT_Error_Code_UNAVAILABLE, gone.what());
    } catch (const InvalidArgument& twice) {
      return fail(PJRT_Error_Code_ALREADY_EXISTS, twice.what());
    } catch (const std::exception& other) {
      return fail(PJRT_Error_Code_INTERNAL, other.what());
    }
  }
  /// The plugin copies the value, and calls the deleter.
  template <class Arguments>
  static void give(Arguments& arguments, std::string_view value) {
    arguments.value = new char[value.size() + 1];
    if (!value.empty()) std::memcpy(arguments.value, value.data(), value.size());
    arguments.value_size = value.size();
    arguments.value_deleter_callback = [](char* bytes) { delete[] bytes; };
  }

  const Processes processes_;
  const std::chrono::milliseconds longest_;
  mutable std::mutex mutex_;
  std::exception_ptr last_;
  PJRT_Error_Code last_code_{};
};

}  // namespace detail

}  // namespace dist::pjrt
