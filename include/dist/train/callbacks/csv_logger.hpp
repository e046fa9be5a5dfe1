#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>
#include <dist/train/model_view.hpp>

namespace dist::nn::callbacks {

/// The options of CSVLogger.
struct CSVLoggerOptions {
  /// The character between two values.
  char separator = ',';
  /// True to append to an existing file, without a second header.
  bool append = false;
};

/// Writes the logs of each epoch as a line of a CSV file with a header: the epoch, then the values in alphabetical
/// order, like Keras' CSVLogger (spec Q23). Missing values are "NA". If a new name appears, the file is rewritten with
/// the additional column. The chief writes.
class CSVLogger {
 public:
  static constexpr std::string_view name = "CSVLogger";
  static constexpr std::string_view adds_to_logs = "";

  /// Writes the file at `path`, which each fit replaces unless `options.append` is true.
  explicit CSVLogger(std::string path, CSVLoggerOptions options = {}) : path_(std::move(path)), options_(options) {}

  /// Throws FileError if the file cannot be written; on_epoch_end also if the file to append to has another header.
  void on_train_begin(ModelView& model);
  void on_epoch_end(ModelView& model, const Epoch& epoch, const Logs& logs);
  void on_train_end(const Logs&) { file_.reset(); }

  /// A resumed fit keeps the lines up to the saved position. The chief counts them. See Trackable.
  void track(ModelView& model, auto& visit) {
    rows_ = model.any_strategy().broadcast_from_chief([this] { return rows_; });
    visit("rows", rows_);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  /// Returns the shortest decimal representation of the number.
  [[nodiscard]] static std::string shortest(double value);
  [[nodiscard]] std::vector<std::string> split(std::string_view line) const;
  void open(const char* mode, std::string_view problem);
  [[nodiscard]] std::vector<std::string> read_lines();
  /// Rewrites the file with the lines to keep. Its columns are `columns` and those in its header.
  void write_anew(std::vector<std::string> columns);
  void write(std::string line);
  [[noreturn]] void fail(std::string_view problem) const;

  static constexpr const char* absent = "NA";

  std::string path_;
  CSVLoggerOptions options_;
  std::unique_ptr<std::FILE, Close> file_;
  bool is_writer_ = false;
  std::vector<std::string> columns_;  // empty before the first epoch
  std::size_t rows_ = 0;              // number of epochs in the file
};

}  // namespace dist::nn::callbacks

#ifndef DIST_COMPILED
#include <dist/train/callbacks/csv_logger.ipp>
#endif
