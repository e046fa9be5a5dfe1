#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/summary/protobuf.hpp>
#include <dist/summary/value.hpp>

namespace dist::summary::detail {

/// Returns the bucket of `value` among `buckets` of equal width, starting at `least`; the greatest value is in the last
/// one. Differences are halved to avoid overflow.
[[nodiscard]] inline std::size_t bucket_of(double value, double least, double half_width, std::size_t buckets) {
  const double place = (value / 2 - least / 2) / half_width;
  return std::min(static_cast<std::size_t>(place), buckets - 1);
}

DIST_INLINE Value histogram_of(std::span<const double> values, std::size_t buckets) {
  if (buckets == 0)
    throw InvalidArgument("A histogram has no buckets", "buckets is 0", "Use 1 or more, or leave it out");
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  for (const double each : values) {
    if (!std::isfinite(each)) continue;
    least = std::min(least, each);
    greatest = std::max(greatest, each);
  }
  const bool empty = least > greatest;
  if (empty) least = greatest = 0;
  const double half_width = (greatest / 2 - least / 2) / static_cast<double>(buckets);
  std::vector<double> counts(buckets);
  for (const double each : values) {
    if (std::isfinite(each)) ++counts[half_width > 0 ? bucket_of(each, least, half_width, buckets) : buckets - 1];
  }
  const auto edge = [&](std::size_t i) {
    return i == buckets ? greatest : 2 * (least / 2 + half_width * static_cast<double>(i));
  };
  std::vector<std::byte> bytes(buckets * 3 * sizeof(double));
  std::byte* to = bytes.data();
  const auto put = [&to](double number) {
    io::store_little_endian(std::bit_cast<std::uint64_t>(number), to);
    to += sizeof number;
  };
  for (std::size_t i = 0; i < buckets; ++i) {
    put(edge(i));
    put(edge(i + 1));
    put(counts[i]);
  }
  return {"histograms", "", tensor(DataType::float64, {static_cast<std::int64_t>(buckets), 3}, [&](Protobuf& tensor) {
            tensor.add_bytes(4, reinterpret_cast<const char*>(bytes.data()), bytes.size());
          })};
}

/// Returns a value of the plugin "hparams" whose content has `message` in `field`; its tensor is empty.
[[nodiscard]] inline Value hyperparameter_value(std::uint32_t field, const std::string& message) {
  return {"hparams", protobuf([&](Protobuf& content) { content.add_message(field, message); }),
          tensor(DataType::float32, {0}, [](Protobuf&) {})};
}

/// Returns a google.protobuf.Value.
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

/// Returns the type's number in the plugin's format: 1 for strings, 2 for bools, 3 for numbers.
[[nodiscard]] inline std::int32_t setting_type(const Setting& setting) {
  constexpr auto number_of = []<class T>(const T&) {
    return std::same_as<T, std::string> ? 1 : std::same_as<T, bool> ? 2 : 3;
  };
  return setting.visit(number_of);
}

/// Returns the value as a string. Numbers have all digits, so that different settings differ.
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

}  // namespace dist::summary::detail

namespace dist::summary {

DIST_INLINE Value scalar_value(double value) {
  return {"scalars", "", detail::tensor(detail::DataType::float32, {}, [&](detail::Protobuf& tensor) {
            const float element = static_cast<float>(value);
            tensor.add_packed_float(5, &element, &element + 1);
          })};
}

DIST_INLINE Value image_value(std::span<const Image> images) {
  constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
  if (images.empty())
    throw InvalidArgument("An image summary has no images", "the list is empty", "Give it one or more");
  for (const Image& image : images)
    if (image.png.substr(0, signature.size()) != signature)
      throw InvalidArgument("An image of a summary is not a PNG file", "its first bytes are not the PNG signature",
                            "Encode the pixels with io::encode_png, or give the bytes of a PNG file");
  return {"images", "",
          detail::tensor(detail::DataType::string, {static_cast<std::int64_t>(images.size() + 2)},
                         [&](detail::Protobuf& tensor) {
                           tensor.add_bytes(8, std::to_string(images.front().width));
                           tensor.add_bytes(8, std::to_string(images.front().height));
                           for (const Image& image : images) tensor.add_bytes(8, image.png.data(), image.png.size());
                         })};
}

DIST_INLINE Value text_value(std::string_view markdown) {
  return {"text", "", detail::tensor(detail::DataType::string, {}, [&](detail::Protobuf& tensor) {
            tensor.add_bytes(8, markdown.data(), markdown.size());
          })};
}

DIST_INLINE Value experiment_value(std::span<const HyperparameterRange> varied, std::span<const Metric> metrics,
                                   double wall_time) {
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
                              "Use only texts, only numbers or only truth values");
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

DIST_INLINE Value session_start_value(std::span<const Hyperparameter> hyperparameters, std::string group,
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

DIST_INLINE Value session_end_value(Outcome outcome, double wall_time) {
  return detail::hyperparameter_value(4, detail::protobuf([&](detail::Protobuf& session) {
                                        session.add_enum(1, static_cast<std::int32_t>(outcome));
                                        session.add_double(2, wall_time);
                                      }));
}

}  // namespace dist::summary
