#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace bench {

/// Positional arguments of a program. Handles `--help`, and exits if an argument is superfluous or an invalid number.
class Arguments {
 public:
  /// `usage` is printed after the program's name: "[ROUNDS [JSON]]"; `help` describes the program.
  Arguments(int argc, char** argv, int most, const char* usage, const char* help)
      : count_(argc - 1), values_(argv + 1), program_(argv[0]), usage_(usage) {
    for (int at = 0; at < count_; ++at) {
      const std::string_view value = values_[at];
      if (value == "--help" || value == "-h") {
        std::printf("usage: %s %s\n%s\n", program_, usage, help);
        std::exit(0);
      }
      if (value.starts_with('-')) refuse(std::string{"unknown option "} + values_[at]);
    }
    if (count_ > most) refuse(std::string{"superfluous argument '"} + values_[most] + "'");
  }

  /// Returns the text at position `at`, or null if it is missing.
  [[nodiscard]] const char* text(int at) const { return at < count_ ? values_[at] : nullptr; }
  /// Returns the positive number at position `at`, or `otherwise` if it is missing.
  [[nodiscard]] int number(int at, int otherwise) const {
    if (at >= count_) return otherwise;
    char* end = nullptr;
    const long number = std::strtol(values_[at], &end, 10);
    if (end == values_[at] || *end != '\0' || number < 1 || number > 1'000'000)
      refuse(std::string{"'"} + values_[at] + "' is not a number from 1 to 1000000");
    return static_cast<int>(number);
  }
  [[noreturn]] void refuse(const std::string& problem) const {
    std::fprintf(stderr, "%s: %s\nusage: %s %s\n", program_, problem.c_str(), program_, usage_);
    std::exit(2);
  }

 private:
  int count_;
  char** values_;
  const char* program_;
  const char* usage_;
};

/// A file for results, or none without a path. Exits the program if the file cannot be opened.
class JsonFile {
 public:
  explicit JsonFile(const char* path) : path_(path), file_(path == nullptr ? nullptr : std::fopen(path, "w")) {
    if (path_ != nullptr && file_ == nullptr) fail();
  }
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;
  ~JsonFile() {
    if (file_ != nullptr && std::fclose(file_) != 0) fail();
  }

  [[nodiscard]] std::FILE* get() const { return file_; }

 private:
  [[noreturn]] void fail() const {
    std::fprintf(stderr, "Cannot write %s\n", path_);
    std::_Exit(1);
  }

  const char* path_;
  std::FILE* file_;
};

}  // namespace bench
