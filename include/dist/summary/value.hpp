/// Values that TensorBoard shows for a tag and a step: scalars, histograms, images and text, in the format of
/// TensorFlow 2.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <dist/core/config.hpp>

namespace dist::summary {

/// A value of a summary: a tensor, and the TensorBoard plugin that shows it.
struct Value {
  std::string plugin;   ///< name of the plugin, such as "scalars"
  std::string content;  ///< plugin-specific data, a serialised message
  std::string tensor;   ///< a serialised TensorProto
};

/// An encoded image: `png` contains the bytes of a PNG file, width and height are in pixels. io/png.hpp encodes pixels.
struct Image {
  std::size_t width;     ///< in pixels
  std::size_t height;    ///< in pixels
  std::string_view png;  ///< bytes of a PNG file; must outlive the image
};

namespace detail {

[[nodiscard]] Value histogram_of(std::span<const double> values, std::size_t buckets);

}  // namespace detail

/// Returns a number for the plugin "scalars", as float32, TensorBoard's precision.
[[nodiscard]] Value scalar_value(double value);

/// Returns a histogram of `values` for the plugin "histograms": a float64 tensor [buckets, 3] with the left edge, the
/// right edge and the count of buckets of equal width. Equal values are all in the last bucket, and every edge is that
/// value; without values everything is 0. Non-finite values are ignored. Throws InvalidArgument if `buckets` is 0.
template <class T>
[[nodiscard]] Value histogram_value(std::span<const T> values, std::size_t buckets = 30) {
  static_assert(std::is_arithmetic_v<T>, "histogram_value: the values must be numbers");
  if constexpr (std::is_same_v<T, double>)
    return detail::histogram_of(values, buckets);
  else
    return detail::histogram_of(std::vector<double>(values.begin(), values.end()), buckets);
}

/// Returns images for the plugin "images": a tensor of strings with the width and the height of the first image, then
/// the PNG file of each. Throws InvalidArgument if `images` is empty, or if an image is not a PNG file.
[[nodiscard]] Value image_value(std::span<const Image> images);

/// Returns text for the plugin "text", which renders it as Markdown.
[[nodiscard]] Value text_value(std::string_view markdown);

/// The value of a hyperparameter: a bool, a number or a string.
class Setting {
 public:
  /// A bool, shown as true or false.
  Setting(std::same_as<bool> auto value) : value_(value) {}
  /// A number, stored as double.
  template <class Number>
    requires((std::integral<Number> && !std::same_as<Number, bool>) || std::floating_point<Number>)
  Setting(Number value) : value_(static_cast<double>(value)) {}
  /// A string.
  Setting(const char* value) : value_(std::string(value)) {}
  /// A string.
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
  std::string name;  ///< as in the experiment's HyperparameterRange
  Setting value;     ///< value in the session
};

/// A hyperparameter of an experiment, with its values: `choices`, or, if that is empty, the numbers of `interval`.
struct HyperparameterRange {
  std::string name;                                     ///< of the hyperparameter in all sessions
  std::vector<Setting> choices{};                       ///< all values; empty: `interval` applies
  std::optional<std::pair<double, double>> interval{};  ///< smallest and largest
};

/// A metric that an experiment compares: a scalar's tag, and its folder inside the session's folder, such as
/// "validation", or empty.
struct Metric {
  std::string tag;      ///< tag of the scalar
  std::string group{};  ///< folder in the session's folder; empty: the session's folder
};

/// The outcome of a session, numbered like in the plugin's format.
enum class Outcome : std::int32_t { success = 1, failure = 2 };

/// The tag of `experiment_value`.
inline constexpr std::string_view experiment_tag = "_hparams_/experiment";
/// The tag of `session_start_value`.
inline constexpr std::string_view session_start_tag = "_hparams_/session_start_info";
/// The tag of `session_end_value`.
inline constexpr std::string_view session_end_tag = "_hparams_/session_end_info";

/// Returns the hyperparameters and metrics of an experiment, for `experiment_tag` at step 0, to be written once in the
/// parent folder of the sessions. Throws InvalidArgument if a name is empty or not text, or if a hyperparameter has
/// choices of several types, or neither choices nor an interval.
[[nodiscard]] Value experiment_value(std::span<const HyperparameterRange> varied, std::span<const Metric> metrics,
                                     double wall_time);

/// Returns the hyperparameters of a session, for `session_start_tag` at step 0. Sessions of one `group` are shown as
/// one trial; by default, sessions with equal values are a group. Throws InvalidArgument if a name is empty or not
/// text.
[[nodiscard]] Value session_start_value(std::span<const Hyperparameter> hyperparameters, std::string group,
                                        double wall_time);

/// Returns the outcome of a session, for `session_end_tag` at step 0.
[[nodiscard]] Value session_end_value(Outcome outcome, double wall_time);

}  // namespace dist::summary

#ifndef DIST_COMPILED
#include <dist/summary/value.ipp>
#endif
