/// Reader for CSV files (RFC 4180): one record of cells per line. A quoted cell may contain separators, line ends and
/// doubled quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

/// The default limit on the bytes of a record. Without a limit, an unclosed quote would read the rest of the file.
inline constexpr std::size_t csv_default_max_bytes = std::size_t{1} << 26;

/// The cells of a record, without quotes. Its memory is reused for the next one.
class CsvRecord {
 public:
  /// The number of cells.
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  /// Cell `cell`, which must be less than `size()`. The text is valid until the next record.
  [[nodiscard]] std::string_view operator[](std::size_t cell) const {
    const std::size_t start = cell == 0 ? 0 : ends_[cell - 1];
    return std::string_view{bytes_}.substr(start, ends_[cell] - start);
  }
  /// The line in the file where the record begins, counted from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }

 private:
  template <ByteSource Source>
  friend class CsvReader;

  std::string bytes_;
  std::vector<std::size_t> ends_;
  std::size_t line_ = 0;
};

/// The records of a source, one after the other. Lines end with `\n`, `\r\n` or `\r`. Empty lines and a UTF-8 byte
/// order mark are skipped.
template <ByteSource Source>
class CsvReader {
 public:
  /// `separator` must not be a quote or a line end.
  explicit CsvReader(Source source, char separator = ',', std::size_t max_bytes = csv_default_max_bytes)
      : source_(std::move(source)), buffer_(std::size_t{1} << 16), separator_(separator), max_bytes_(max_bytes) {
    refill();
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (rest_.starts_with(mark)) rest_.remove_prefix(mark.size());
  }

  /// Assigns the next record and returns true, or returns false at the end.
  ///
  /// Throws FileError, with the file, line and column, for a quote inside an unquoted cell, text after a closing quote,
  /// a missing closing quote, or a record of more than `max_bytes` bytes.
  [[nodiscard]] bool next(CsvRecord& record) {
    for (;;) {
      record.bytes_.clear();
      record.ends_.clear();
      record.line_ = line_;
      if (peek() == at_end) return false;
      if (is_line_end(peek())) {
        take_line_end();
        continue;
      }
      for (;;) {
        if (peek() == '"')
          read_quoted(record);
        else
          read_plain(record);
        record.ends_.push_back(record.bytes_.size());
        if (!is_separator(peek())) break;
        rest_.remove_prefix(1);
      }
      take_line_end();
      return true;
    }
  }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  static constexpr int at_end = -1;

  void refill() {
    const auto buffer = std::span<char>{buffer_.data(), buffer_.size()};
    rest_ = {buffer.data(), read_full(source_, std::as_writable_bytes(buffer))};
  }
  /// Returns the next byte, or `at_end`.
  [[nodiscard]] int peek() {
    if (rest_.empty()) refill();
    return rest_.empty() ? at_end : static_cast<unsigned char>(rest_.front());
  }
  [[nodiscard]] static bool is_line_end(int byte) noexcept { return byte == '\n' || byte == '\r'; }
  [[nodiscard]] bool is_separator(int byte) const noexcept { return byte == static_cast<unsigned char>(separator_); }
  [[nodiscard]] bool ends_cell(int byte) const noexcept {
    return byte == at_end || is_line_end(byte) || is_separator(byte);
  }

  void take_line_end() {
    if (peek() == '\r') {
      rest_.remove_prefix(1);
      if (peek() == '\n') rest_.remove_prefix(1);
    } else if (peek() == '\n') {
      rest_.remove_prefix(1);
    }
    ++line_;
  }

  /// Appends the next `count` bytes to the record.
  void append(CsvRecord& record, std::size_t count) {
    if (record.bytes_.size() + count > max_bytes_)
      fail(record, "has a record that is too long", concat("it has more than ", max_bytes_, " bytes"),
           "Close the quotes of its cells, or raise max_bytes if the file is sound");
    record.bytes_.append(rest_.substr(0, count));
    rest_.remove_prefix(count);
  }

  void read_plain(CsvRecord& record) {
    while (!ends_cell(peek())) {
      std::size_t count = 0;
      while (count < rest_.size() && !ends_cell(static_cast<unsigned char>(rest_[count])) && rest_[count] != '"')
        ++count;
      append(record, count);
      if (peek() == '"')
        fail(record, "has a quote within a cell", "the cell does not begin with one",
             "Put the whole cell in quotes, and double those within it");
    }
  }

  void read_quoted(CsvRecord& record) {
    const std::size_t first_line = line_;
    rest_.remove_prefix(1);
    for (;;) {
      if (peek() == at_end)
        fail(record, "ends within quotes", concat("the cell began on line ", first_line),
             "Close the quotes of the cell");
      std::size_t count = 0;
      while (count < rest_.size() && rest_[count] != '"') line_ += static_cast<std::size_t>(rest_[count++] == '\n');
      append(record, count);
      if (peek() != '"') continue;
      rest_.remove_prefix(1);
      if (peek() != '"') break;
      append(record, 1);
    }
    if (!ends_cell(peek()))
      fail(record, "has a cell that continues after its closing quote",
           concat("the quote is followed by ", quoted(rest_.substr(0, 1))), "Double the quotes within cells");
  }

  [[noreturn]] void fail(const CsvRecord& record, std::string_view problem, std::string_view why,
                         std::string_view suggestion) const {
    throw FileError(name(), problem, concat("line ", line_, ", column ", record.size() + 1, ": ", why), suggestion);
  }

  Source source_;
  AlignedBuffer<char> buffer_;
  std::string_view rest_;  // of the buffer
  char separator_;
  std::size_t max_bytes_;
  std::size_t line_ = 1;
};
#ifdef DIST_COMPILED
extern template class CsvReader<FileSource>;
#endif

}  // namespace dist::io
