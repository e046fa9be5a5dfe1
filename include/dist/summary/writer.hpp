/// Events, the records of an event file: serialised messages with a wall time, in seconds since 1970 (UTC).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/core/memory_space.hpp>
#include <dist/summary/event_file.hpp>
#include <dist/summary/graph.hpp>
#include <dist/summary/hyperparameters.hpp>
#include <dist/summary/protobuf.hpp>
#include <dist/summary/value.hpp>

namespace dist::summary {

/// The first event of every file, which says the format's version.
[[nodiscard]] inline std::string version_event(double wall_time) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_string(3, "brain.Event:2");
  });
}

/// `value` under `tag` at `step`. Throws InvalidArgument for a tag that is empty or no text.
[[nodiscard]] inline std::string summary_event(double wall_time, std::int64_t step, std::string_view tag,
                                               const Value& value) {
  using detail::Protobuf, detail::protobuf;
  detail::require_text("a tag", tag);
  const std::string metadata = protobuf([&](Protobuf& message) {
    message.add_message(1, protobuf([&](Protobuf& plugin) {
                          plugin.add_string(1, value.plugin);
                          if (!value.content.empty()) plugin.add_bytes(2, value.content);
                        }));
  });
  const std::string summary = protobuf([&](Protobuf& message) {
    message.add_message(1, protobuf([&](Protobuf& entry) {
                          entry.add_string(1, tag.data(), tag.size());
                          entry.add_message(8, value.tensor);
                          entry.add_message(9, metadata);
                        }));
  });
  return protobuf([&](Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_int64(2, step);
    event.add_message(5, summary);
  });
}

/// The graph of the model; `graph_def` is a serialised GraphDef, see graph.hpp.
[[nodiscard]] inline std::string graph_event(double wall_time, const std::string& graph_def) {
  return detail::protobuf([&](detail::Protobuf& event) {
    event.add_double(1, wall_time);
    event.add_bytes(4, graph_def);
  });
}

/// Writes what TensorBoard shows to an event file of its own:
///
///     dist::summary::Writer writer{"logs/train"};
///     writer.scalar("epoch_loss", loss, epoch);
///
/// TensorBoard takes each folder with such files for a run, whose name is the folder's: `tensorboard --logdir logs`. Every
/// function stamps what it writes with the time of the call. All throw FileError where events go to the disk and it does
/// not take them, see EventFile::append, and InvalidArgument for a tag that is empty or no text.
class Writer {
 public:
  /// Makes a file in `folder`, which is made too where it is missing. Throws FileError, which names the folder or the
  /// file, where the system refuses.
  explicit Writer(const std::string& folder, FlushPolicy policy = {}) : Writer(folder, policy, seconds_since_1970()) {}
  /// Writes nothing, wherever it is told to: for processes beside the one that writes, which call the same functions. Tags
  /// and values are checked all the same.
  Writer() = default;

  /// A number under `tag` at `step`, kept as float32.
  void scalar(std::string_view tag, double value, std::int64_t step) { write(tag, scalar_value(value), step); }
  /// The distribution of the numbers of an array: what has `data()` and `size()`, such as a tensor or a vector.
  template <class Numbers>
  void histogram(std::string_view tag, const Numbers& numbers, std::int64_t step, std::size_t buckets = 30) {
    dist::detail::require_host_access<dist::detail::MemorySpaceOf<Numbers>>();
    using Number = std::remove_cvref_t<decltype(*numbers.data())>;
    write(tag, histogram_value(std::span<const Number>{numbers.data(), numbers.size()}, buckets), step);
  }
  /// One image, or several of the same size.
  void image(std::string_view tag, const Image& image, std::int64_t step) { images(tag, {&image, 1}, step); }
  void images(std::string_view tag, std::span<const Image> images, std::int64_t step) {
    write(tag, image_value(images), step);
  }
  /// A text in Markdown.
  void text(std::string_view tag, std::string_view markdown, std::int64_t step) {
    write(tag, text_value(markdown), step);
  }
  /// The model's graph, once in a run. Throws InvalidArgument as `graph_def` does.
  void graph(std::span<const Node> nodes) { append(graph_event(seconds_since_1970(), graph_def(nodes))); }

  /// What an experiment varies and measures: in the folder above those of its sessions. Throws InvalidArgument as
  /// `experiment_value` does.
  void experiment(std::span<const HyperparameterRange> varied, std::span<const Metric> metrics) {
    write(experiment_tag, experiment_value(varied, metrics, seconds_since_1970()), 0);
  }
  /// The values with which this run began, one of those of trial `group`.
  void session_start(std::span<const Hyperparameter> hyperparameters, std::string group = "") {
    write(session_start_tag, session_start_value(hyperparameters, std::move(group), seconds_since_1970()), 0);
  }
  void session_end(Outcome outcome) { write(session_end_tag, session_end_value(outcome, seconds_since_1970()), 0); }

  /// A value for any plugin.
  void write(std::string_view tag, const Value& value, std::int64_t step) {
    append(summary_event(seconds_since_1970(), step, tag, value));
  }

  /// As EventFile's functions.
  void flush() {
    if (file_) file_->flush();
  }
  void close() {
    if (file_) file_->close();
  }
  /// Empty where nothing is written.
  [[nodiscard]] std::string path() const { return file_ ? file_->path() : std::string{}; }

 private:
  Writer(const std::string& folder, FlushPolicy policy, double now)
      : file_(std::in_place, folder, now, version_event(now), policy) {}

  void append(std::string_view event) {
    if (file_) file_->append(event);
  }

  [[nodiscard]] static double seconds_since_1970() {
    std::timespec now{};
    std::timespec_get(&now, TIME_UTC);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  std::optional<EventFile> file_;
};

}  // namespace dist::summary
