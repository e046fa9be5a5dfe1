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
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/summary/event_file.hpp>
#include <dist/summary/value.hpp>

namespace dist::summary {

/// A node of a model's graph, such as a layer. TensorBoard groups nodes by the parts of their names between slashes.
struct Node {
  std::string name{};                 ///< unique: "block_1/conv2d"
  std::string op{};                   ///< the operation: "Conv2D"
  std::vector<std::string> inputs{};  ///< the names of the input nodes, in order
  std::vector<std::int64_t> shape{};  ///< of its output; -1 for an axis of any extent; empty if unknown
  std::vector<std::pair<std::string, std::string>> attributes{};  ///< other attributes to show: {"kernel", "3 x 3"}
};

/// Returns the serialised GraphDef of a model. Throws InvalidArgument, naming the node, if two nodes have the same
/// name, if an input does not exist, or if a name is empty or not text.
[[nodiscard]] std::string graph_def(std::span<const Node> nodes);

/// Returns the first event of every file, with the format's version.
[[nodiscard]] std::string version_event(double wall_time);

/// Returns an event with `value` for `tag` and `step`. Throws InvalidArgument if the tag is empty or not text.
[[nodiscard]] std::string summary_event(double wall_time, std::int64_t step, std::string_view tag, const Value& value);

/// Returns an event with the graph of the model; `graph_def` is a serialised GraphDef.
[[nodiscard]] std::string graph_event(double wall_time, const std::string& graph_def);

/// Writes values for TensorBoard to a new event file:
///
///     dist::summary::Writer writer{"logs/train"};
///     writer.scalar("epoch_loss", loss, epoch);
///
/// TensorBoard shows each folder with such files as a run: `tensorboard --logdir logs`. The wall time of a value is the
/// time of the call. All functions throw FileError if writing fails, see EventFile::append, and InvalidArgument if a
/// tag is empty or not text.
class Writer {
 public:
  /// Creates a file in `folder`, and the folder if missing. Throws FileError, naming the folder or the file, if the
  /// system call fails.
  explicit Writer(const std::string& folder, FlushPolicy policy = {}) : Writer(folder, policy, seconds_since_1970()) {}
  /// A writer without a file, for the other processes of a group: it checks tags and values, but writes nothing.
  Writer() = default;

  /// Writes a number for `tag` and `step`, as float32.
  void scalar(std::string_view tag, double value, std::int64_t step) { write(tag, scalar_value(value), step); }
  /// Writes the histogram of an array that has `data()` and `size()`, such as a tensor or a vector.
  template <class Numbers>
  void histogram(std::string_view tag, const Numbers& numbers, std::int64_t step, std::size_t buckets = 30) {
    dist::detail::require_host_access<dist::detail::MemorySpaceOf<Numbers>>();
    using Number = std::remove_cvref_t<decltype(*numbers.data())>;
    write(tag, histogram_value(std::span<const Number>{numbers.data(), numbers.size()}, buckets), step);
  }
  /// Writes one image, or several of the same size.
  void image(std::string_view tag, const Image& image, std::int64_t step) { images(tag, {&image, 1}, step); }
  /// Writes several images of the same size.
  void images(std::string_view tag, std::span<const Image> images, std::int64_t step) {
    write(tag, image_value(images), step);
  }
  /// Writes a text in Markdown.
  void text(std::string_view tag, std::string_view markdown, std::int64_t step) {
    write(tag, text_value(markdown), step);
  }
  /// Writes the model's graph, once per run. Throws InvalidArgument like `graph_def`.
  void graph(std::span<const Node> nodes) { append(graph_event(seconds_since_1970(), graph_def(nodes))); }

  /// Writes the hyperparameters and metrics of an experiment. The writer's folder must be the parent folder of the
  /// sessions. Throws InvalidArgument like `experiment_value`.
  void experiment(std::span<const HyperparameterRange> varied, std::span<const Metric> metrics) {
    write(experiment_tag, experiment_value(varied, metrics, seconds_since_1970()), 0);
  }
  /// Writes the hyperparameters of this run, a part of trial `group`.
  void session_start(std::span<const Hyperparameter> hyperparameters, std::string group = "") {
    write(session_start_tag, session_start_value(hyperparameters, std::move(group), seconds_since_1970()), 0);
  }
  /// Writes the outcome of this run.
  void session_end(Outcome outcome) { write(session_end_tag, session_end_value(outcome, seconds_since_1970()), 0); }

  /// Writes a value for any plugin.
  void write(std::string_view tag, const Value& value, std::int64_t step) {
    append(summary_event(seconds_since_1970(), step, tag, value));
  }

  /// Like EventFile's functions.
  void flush() {
    if (file_) file_->flush();
  }
  /// Writes the pending events and closes the file.
  void close() {
    if (file_) file_->close();
  }
  /// The path of the file; empty for a writer without a file.
  [[nodiscard]] std::string path() const { return file_ ? file_->path() : std::string{}; }

 private:
  Writer(const std::string& folder, FlushPolicy policy, double now)
      : file_(std::in_place, folder, now, version_event(now), policy) {}

  void append(std::string_view event) {
    if (file_) file_->append(event);
  }

  [[nodiscard]] static double seconds_since_1970();

  std::optional<EventFile> file_;
};

}  // namespace dist::summary

#ifndef DIST_COMPILED
#include <dist/summary/writer.ipp>
#endif
