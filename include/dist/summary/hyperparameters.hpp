/// Hyperparameters for TensorBoard's plugin "hparams": what an experiment varies and measures, and with which values each
/// session of it ran.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/summary/protobuf.hpp>
#include <dist/summary/value.hpp>

namespace dist::summary {

/// The value of a hyperparameter: a truth value, a number or a text.
class Setting {
 public:
  Setting(std::same_as<bool> auto value) : value_(value) {}
  template <class Number>
    requires((std::integral<Number> && !std::same_as<Number, bool>) || std::floating_point<Number>)
  Setting(Number value) : value_(static_cast<double>(value)) {}
  Setting(const char* value) : value_(std::string(value)) {}
  Setting(std::string value) : value_(std::move(value)) {}

  /// Calls `visit` with the bool, the double or the std::string.
  template <class Visit>
  decltype(auto) visit(Visit visit) const {
    return std::visit(visit, value_);
  }

 private:
  std::variant<bool, double, std::string> value_;
};

/// A hyperparameter and its value in a session.
struct Hyperparameter {
  std::string name;
  Setting value;
};

/// A hyperparameter that an experiment varies: among `choices`, or, where there are none, over the numbers of `interval`.
struct HyperparameterRange {
  std::string name;
  std::vector<Setting> choices{};
  std::optional<std::pair<double, double>> interval{};  ///< least and greatest
};

/// A number that an experiment compares: a scalar's tag, and the folder under a session's own in which it lies, such as
/// "validation"; empty for the session's own folder.
struct Metric {
  std::string tag;
  std::string group{};
};

/// How a session ended, by its number in the plugin's format.
enum class Outcome : std::int32_t { success = 1, failure = 2 };

/// The tags under which the plugin looks.
inline constexpr std::string_view experiment_tag = "_hparams_/experiment";
inline constexpr std::string_view session_start_tag = "_hparams_/session_start_info";
inline constexpr std::string_view session_end_tag = "_hparams_/session_end_info";

namespace detail {

/// A value of the plugin whose content has `message` in `field`; its tensor has no elements.
[[nodiscard]] inline Value hyperparameter_value(std::uint32_t field, const std::string& message) {
  return {"hparams", protobuf([&](Protobuf& content) { content.add_message(field, message); }),
          tensor(DataType::float32, {0}, [](Protobuf&) {})};
}

/// A google.protobuf.Value.
[[nodiscard]] inline std::string setting_message(const Setting& setting) {
  return protobuf([&](Protobuf& message) {
    setting.visit([&]<class T>(const T& value) {
      if constexpr (std::same_as<T, bool>)
        message.add_bool(4, value);
      else if constexpr (std::same_as<T, double>)
        message.add_double(2, value);
      else
        message.add_string(3, value);
    });
  });
}

/// The type by its number in the plugin's format: 1 for text, 2 for truth values, 3 for numbers.
[[nodiscard]] inline std::int32_t setting_type(const Setting& setting) {
  constexpr auto number_of = []<class T>(const T&) {
    return std::same_as<T, std::string> ? 1 : std::same_as<T, bool> ? 2 : 3;
  };
  return setting.visit(number_of);
}

/// Every digit of a number, so that different settings differ as texts.
[[nodiscard]] inline std::string setting_text(const Setting& setting) {
  return setting.visit([]<class T>(const T& value) -> std::string {
    if constexpr (std::same_as<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::same_as<T, double>) {
      char digits[32];
      return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    } else {
      return value;
    }
  });
}

}  // namespace detail

/// What an experiment varies and measures, for `experiment_tag` at step 0, written once in the folder above the sessions'.
/// Throws InvalidArgument for names that are empty or no text, and for a hyperparameter with choices of several types or
/// with neither choices nor an interval.
[[nodiscard]] inline Value experiment_value(std::span<const HyperparameterRange> varied,
                                            std::span<const Metric> metrics, double wall_time) {
  using detail::Protobuf, detail::protobuf;
  return detail::hyperparameter_value(
      2, protobuf([&](Protobuf& experiment) {
        experiment.add_double(3, wall_time);
        for (const HyperparameterRange& each : varied) {
          detail::require_text("a hyperparameter", each.name);
          if (each.choices.empty() && !each.interval)
            throw InvalidArgument(concat("Hyperparameter ", quoted(each.name), " varies over nothing"),
                                  "it has neither choices nor an interval", "Give it one of them");
          const std::int32_t type = each.choices.empty() ? 3 : detail::setting_type(each.choices.front());
          experiment.add_message(
              4, protobuf([&](Protobuf& info) {
                info.add_string(1, each.name);
                info.add_enum(4, type);
                if (each.choices.empty()) {
                  info.add_message(6, protobuf([&](Protobuf& interval) {
                                     interval.add_double(1, each.interval->first);
                                     interval.add_double(2, each.interval->second);
                                   }));
                  return;
                }
                info.add_message(
                    5, protobuf([&](Protobuf& list) {
                      for (const Setting& choice : each.choices) {
                        if (detail::setting_type(choice) != type)
                          throw InvalidArgument(
                              concat("Hyperparameter ", quoted(each.name), " has choices of several types"),
                              concat(quoted(detail::setting_text(choice)), " is of another type than the first one"),
                              "Use texts, numbers or truth values");
                        list.add_message(1, detail::setting_message(choice));
                      }
                    }));
              }));
        }
        for (const Metric& metric : metrics) {
          detail::require_text("the tag of a metric", metric.tag);
          experiment.add_message(5, protobuf([&](Protobuf& info) {
                                   info.add_message(1, protobuf([&](Protobuf& name) {
                                                      name.add_string(1, metric.group);
                                                      name.add_string(2, metric.tag);
                                                    }));
                                 }));
        }
      }));
}

/// The values with which a session runs, for `session_start_tag` at step 0. Sessions of one `group` are shown as one trial;
/// without a name, those with equal values are a group. Throws InvalidArgument for names that are empty or no text.
[[nodiscard]] inline Value session_start_value(std::span<const Hyperparameter> hyperparameters, std::string group,
                                               double wall_time) {
  using detail::Protobuf, detail::protobuf;
  for (const Hyperparameter& each : hyperparameters) detail::require_text("a hyperparameter", each.name);
  if (group.empty()) {
    std::vector<std::string> settings;
    for (const auto& [name, value] : hyperparameters)
      settings.push_back(concat(name, "=", detail::setting_text(value)));
    std::sort(settings.begin(), settings.end());
    group = joined(settings);
  }
  return detail::hyperparameter_value(3, protobuf([&](Protobuf& session) {
                                        for (const Hyperparameter& each : hyperparameters)
                                          session.add_message(1, protobuf([&](Protobuf& entry) {
                                                                entry.add_string(1, each.name);
                                                                entry.add_message(2,
                                                                                  detail::setting_message(each.value));
                                                              }));
                                        session.add_string(4, group);
                                        session.add_double(5, wall_time);
                                      }));
}

/// How a session ended, for `session_end_tag` at step 0.
[[nodiscard]] inline Value session_end_value(Outcome outcome, double wall_time) {
  return detail::hyperparameter_value(4, detail::protobuf([&](detail::Protobuf& session) {
                                        session.add_enum(1, static_cast<std::int32_t>(outcome));
                                        session.add_double(2, wall_time);
                                      }));
}

}  // namespace dist::summary
