#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/context/run_collectively.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct CSVLoggerOptions {
  char separator = ',';
  /// Whether lines are added to a file that is there, without a second header.
  bool append = false;
};

/// Writes the logs of each epoch to a file, a line each, with a header: the epoch, then the values by the alphabet, as
/// Keras' CSVLogger does (spec Q23). What is not in an epoch's logs is "NA". Where logs have names that the header has not, the
/// file is written anew with these columns. The chief writes.
class CSVLogger {
 public:
  static constexpr std::string_view name = "CSVLogger";
  static constexpr std::string_view adds_to_logs = "";

  explicit CSVLogger(std::string path, CSVLoggerOptions options = {}) : path_(std::move(path)), options_(options) {}

  /// Throws FileError if the file cannot be written, as the next hook does, which also throws it if `append` names a file
  /// with another header.
  void on_train_begin(auto& model) {
    columns_.clear();
    rows_ = 0;
    is_writer_ = model.is_chief();
    if (!is_writer_) return;
    open("a", "cannot be made");
    if (options_.append) rows_ = std::max<std::size_t>(read_lines().size(), 1) - 1;
  }
  void on_epoch_end(auto& model, const Epoch& epoch, const Logs& logs) {
    if (!is_writer_) return;
    std::vector<std::string> columns = columns_;
    const auto add = [&](const std::string& column) {
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
    };
    for (const Logs::Entry& entry : logs) {
      add(entry.name);
      if (model.validates() && model.better(entry.name)) add("val_" + entry.name);
    }
    if (columns.size() > columns_.size()) write_anew(std::move(columns));
    std::string line = concat(epoch.index);
    for (const std::string& column : columns_) {
      const double* const value = logs.find(column);
      line.append(1, options_.separator).append(value == nullptr ? absent : shortest(*value));
    }
    write(std::move(line));
    ++rows_;
  }
  void on_train_end(const Logs&) { file_.reset(); }

  /// A fit that goes on keeps the lines that were there when it was saved. The chief counts them. See Trackable.
  void track(auto& model, auto& visit) {
    rows_ = dist::detail::broadcast_from_chief(model.strategy(), [this] { return rows_; });
    visit("rows", rows_);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  /// The shortest digits that are the number.
  [[nodiscard]] static std::string shortest(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }
  [[nodiscard]] std::vector<std::string> split(std::string_view line) const {
    std::vector<std::string> fields;
    for (;;) {
      const std::size_t end = line.find(options_.separator);
      fields.emplace_back(line.substr(0, end));
      if (end == std::string_view::npos) return fields;
      line.remove_prefix(end + 1);
    }
  }
  void open(const char* mode, std::string_view problem) {
    fill_standard_descriptors();
    file_.reset(std::fopen(path_.c_str(), mode));
    if (!file_) fail(problem);
  }
  [[nodiscard]] std::vector<std::string> read_lines() {
    open("r", "cannot be read");
    std::vector<std::string> lines;
    bool is_in_line = false;
    for (int letter = std::fgetc(file_.get()); letter != EOF; letter = std::fgetc(file_.get())) {
      if (!std::exchange(is_in_line, letter != '\n')) lines.emplace_back();
      if (is_in_line) lines.back() += static_cast<char>(letter);
    }
    return lines;
  }
  /// Writes the file again with the lines that it keeps. Its columns are these and the ones of its header.
  void write_anew(std::vector<std::string> columns) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> header{"epoch"};
    if (rows_ > 0) {
      const std::vector<std::string> lines = read_lines();
      rows_ = std::min(rows_, std::max<std::size_t>(lines.size(), 1) - 1);
      if (!lines.empty()) header = split(lines[0]);
      if (header[0] != "epoch")
        throw FileError(path_, "has another header than CSVLogger writes", concat("it begins with ", quoted(lines[0])),
                        "Name another file, or leave out CSVLoggerOptions.append");
      for (std::size_t row = 1; row <= rows_; ++row) rows.push_back(split(lines[row]));
    }
    for (std::size_t i = 1; i < header.size(); ++i)
      if (std::find(columns.begin(), columns.end(), header[i]) == columns.end()) columns.push_back(header[i]);
    std::sort(columns.begin(), columns.end());
    open("w", "cannot be made");
    const auto write_row = [&](std::string line, const auto& field_of) {
      for (const std::string& column : columns) line.append(1, options_.separator).append(field_of(column));
      write(std::move(line));
    };
    write_row("epoch", [](const std::string& column) { return column; });
    for (const std::vector<std::string>& row : rows)
      write_row(row[0], [&](const std::string& column) {
        const auto place = std::find(header.begin(), header.end(), column) - header.begin();
        return static_cast<std::size_t>(place) < row.size() ? row[static_cast<std::size_t>(place)]
                                                            : std::string{absent};
      });
    columns_ = std::move(columns);
  }
  void write(std::string line) {
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
      fail("cannot be written");
  }
  [[noreturn]] void fail(std::string_view problem) const {
    throw FileError(path_, problem, std::strerror(errno), "Check its folder, the permissions and the room on the disk");
  }

  static constexpr const char* absent = "NA";

  std::string path_;
  CSVLoggerOptions options_;
  std::unique_ptr<std::FILE, Close> file_;
  bool is_writer_ = false;
  std::vector<std::string> columns_;  // none before the first epoch
  std::size_t rows_ = 0;              // lines of epochs in the file
};

}  // namespace dist::nn::callbacks
