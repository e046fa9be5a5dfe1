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

#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/train/callbacks.hpp>
#include <dist/train/logs.hpp>

namespace dist::nn::callbacks {

struct CSVLoggerOptions {
  char separator = ',';
  /// Whether lines are added to a file that is there, without a second header.
  bool append = false;
};

/// Writes the logs of each epoch to a file, a line each, with a header: the epoch, then the values by the alphabet, as
/// Keras' CSVLogger does (spec Q23). What is not in an epoch's logs is "NA". The chief writes.
class CSVLogger {
 public:
  explicit CSVLogger(std::string path, CSVLoggerOptions options = {}) : path_(std::move(path)), options_(options) {}

  /// Throws FileError where the file cannot be written, as the next hook does.
  void on_train_begin(auto& model) {
    if (!model.is_chief()) return;
    file_.reset(std::fopen(path_.c_str(), options_.append ? "a" : "w"));
    if (!file_) fail("cannot be made");
    std::fseek(file_.get(), 0, SEEK_END);
    has_header_ = std::ftell(file_.get()) > 0;
    names_.clear();
  }
  void on_epoch_end(const Epoch& epoch, const Logs& logs) {
    if (!file_) return;
    if (names_.empty()) {
      for (const Logs::Entry& entry : logs) names_.push_back(entry.name);
      std::sort(names_.begin(), names_.end());
      std::string header = "epoch";
      for (const std::string& name : names_) header.append(1, options_.separator).append(name);
      if (!std::exchange(has_header_, true)) write(header);
    }
    std::string line = text(epoch.index);
    for (const std::string& name : names_) {
      const double* const value = logs.find(name);
      line.append(1, options_.separator).append(value == nullptr ? "NA" : shortest(*value));
    }
    write(line);
  }
  void on_train_end(const Logs&) { file_.reset(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  /// The shortest digits that are the number.
  [[nodiscard]] static std::string shortest(double value) {
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }
  void write(std::string line) {
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
      fail("cannot be written");
  }
  [[noreturn]] void fail(std::string_view problem) const {
    throw FileError(path_, problem, std::strerror(errno), "Check its folder, the permissions and the room on the disk");
  }

  std::string path_;
  CSVLoggerOptions options_;
  std::unique_ptr<std::FILE, Close> file_;
  bool has_header_ = false;
  std::vector<std::string> names_;
};

}  // namespace dist::nn::callbacks
