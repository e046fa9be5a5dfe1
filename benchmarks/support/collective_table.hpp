#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "collective_options.hpp"
#include "collective_timing.hpp"

namespace bench {

/// A table in the format of nccl-tests. algbw is bytes over time; busbw is 2 (n - 1) / n of it for n ranks, the rate
/// that an all-reduce needs on each link.
class CollectiveTable {
 public:
  /// `contender` is a name and a variant, such as "Open MPI 4.1.4, in place".
  CollectiveTable(std::string contender, const CollectiveOptions& options, std::size_t ranks)
      : contender_(std::move(contender)), options_(options), ranks_(ranks) {
    std::printf("# %s, %zu ranks, median of about %g s for each size\n", contender_.c_str(), ranks_, options_.duration);
    std::printf("#%11s %12s %7s %4s %12s %12s %12s %7s  %s\n", "size(B)", "count", "type", "op", "time(us)",
                "algbw(GB/s)", "busbw(GB/s)", "#wrong", "algorithm");
  }

  void add(std::size_t bytes, std::size_t count, const Timing& timing, std::string algorithm) {
    const Row row{bytes, count, timing, std::move(algorithm)};
    std::printf("%12zu %12zu %7s %4s %12.3f %12.3f %12.3f %7zu  %s\n", bytes, count, options_.type.c_str(),
                options_.op.c_str(), 1e6 * timing.seconds, algbw(row), busbw(row), timing.wrong, row.algorithm.c_str());
    std::fflush(stdout);
    wrong_ += timing.wrong;
    rows_.push_back(row);
  }

  /// Writes the JSON file of the options, if any. Returns the exit status: 1 for wrong results or a file that cannot
  /// be written.
  [[nodiscard]] int finish() const {
    if (!options_.json.empty() && !write(options_.json)) return 1;
    if (wrong_ == 0) return 0;
    std::fprintf(stderr, "%s: %zu elements are wrong\n", contender_.c_str(), wrong_);
    return 1;
  }

 private:
  struct Row {
    std::size_t bytes, count;
    Timing timing;
    std::string algorithm;
  };

  [[nodiscard]] static double algbw(const Row& row) {
    return static_cast<double>(row.bytes) / row.timing.seconds * 1e-9;
  }
  [[nodiscard]] double busbw(const Row& row) const {
    return algbw(row) * 2 * static_cast<double>(ranks_ - 1) / static_cast<double>(ranks_);
  }

  [[nodiscard]] bool write(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) {
      std::fprintf(stderr, "Cannot write %s\n", path.c_str());
      return false;
    }
    const char* separator = "[\n";
    for (const Row& row : rows_) {
      std::fprintf(file,
                   "%s{\"contender\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %zu, \"bytes\": %zu, \"count\": %zu, "
                   "\"type\": \"%s\", \"op\": \"%s\", \"us\": %.6g, \"algbw\": %.6g, \"busbw\": %.6g, \"wrong\": %zu}",
                   separator, contender_.c_str(), row.algorithm.c_str(), ranks_, row.bytes, row.count,
                   options_.type.c_str(), options_.op.c_str(), 1e6 * row.timing.seconds, algbw(row), busbw(row),
                   row.timing.wrong);
      separator = ",\n";
    }
    std::fprintf(file, rows_.empty() ? "[]\n" : "\n]\n");
    return std::fclose(file) == 0;
  }

  std::string contender_;
  CollectiveOptions options_;
  std::size_t ranks_;
  std::vector<Row> rows_;
  std::size_t wrong_ = 0;
};

/// Calls `measure.operator()<T>()` with the element type of the options.
template <class Measure>
int with_element_type(const CollectiveOptions& options, const Measure& measure) {
  if (options.type == "double") return measure.template operator()<double>();
  if (options.type == "int32") return measure.template operator()<int>();
  return measure.template operator()<float>();
}

}  // namespace bench
