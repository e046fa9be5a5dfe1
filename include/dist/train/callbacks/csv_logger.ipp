#pragma once

#include <cerrno>
#include <charconv>
#include <cstring>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/train/callbacks/csv_logger.hpp>

namespace dist::nn::callbacks {

DIST_INLINE void CSVLogger::on_train_begin(ModelView& model) {
  columns_.clear();
  rows_ = 0;
  is_writer_ = model.is_chief();
  if (!is_writer_) return;
  open("a", "cannot be created");
  if (options_.append) rows_ = std::max<std::size_t>(read_lines().size(), 1) - 1;
}

DIST_INLINE void CSVLogger::on_epoch_end(ModelView& model, const Epoch& epoch, const Logs& logs) {
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

DIST_INLINE std::string CSVLogger::shortest(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

DIST_INLINE std::vector<std::string> CSVLogger::split(std::string_view line) const {
  std::vector<std::string> fields;
  for (;;) {
    const std::size_t end = line.find(options_.separator);
    fields.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

DIST_INLINE void CSVLogger::open(const char* mode, std::string_view problem) {
  fill_standard_descriptors();
  file_.reset(std::fopen(path_.c_str(), mode));
  if (!file_) fail(problem);
}

DIST_INLINE std::vector<std::string> CSVLogger::read_lines() {
  open("r", "cannot be read");
  std::vector<std::string> lines;
  bool is_in_line = false;
  for (int letter = std::fgetc(file_.get()); letter != EOF; letter = std::fgetc(file_.get())) {
    if (!std::exchange(is_in_line, letter != '\n')) lines.emplace_back();
    if (is_in_line) lines.back() += static_cast<char>(letter);
  }
  return lines;
}

DIST_INLINE void CSVLogger::write_anew(std::vector<std::string> columns) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> header{"epoch"};
  if (rows_ > 0) {
    const std::vector<std::string> lines = read_lines();
    rows_ = std::min(rows_, std::max<std::size_t>(lines.size(), 1) - 1);
    if (!lines.empty()) header = split(lines[0]);
    if (header[0] != "epoch")
      throw FileError(path_, "does not have the header that CSVLogger writes",
                      concat("it begins with ", quoted(lines[0])),
                      "Name another file, or leave out CSVLoggerOptions.append");
    for (std::size_t row = 1; row <= rows_; ++row) rows.push_back(split(lines[row]));
  }
  for (std::size_t i = 1; i < header.size(); ++i)
    if (std::find(columns.begin(), columns.end(), header[i]) == columns.end()) columns.push_back(header[i]);
  std::sort(columns.begin(), columns.end());
  open("w", "cannot be created");
  const auto write_row = [&](std::string line, const auto& field_of) {
    for (const std::string& column : columns) line.append(1, options_.separator).append(field_of(column));
    write(std::move(line));
  };
  write_row("epoch", [](const std::string& column) { return column; });
  for (const std::vector<std::string>& row : rows)
    write_row(row[0], [&](const std::string& column) {
      const auto place = std::find(header.begin(), header.end(), column) - header.begin();
      return static_cast<std::size_t>(place) < row.size() ? row[static_cast<std::size_t>(place)] : std::string{absent};
    });
  columns_ = std::move(columns);
}

DIST_INLINE void CSVLogger::write(std::string line) {
  line += '\n';
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    fail("cannot be written");
}

DIST_INLINE void CSVLogger::fail(std::string_view problem) const {
  throw FileError(path_, problem, std::strerror(errno), "Check its folder, the permissions and the free disk space");
}

}  // namespace dist::nn::callbacks
