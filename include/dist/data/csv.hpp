#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/parse_float.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/files.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/csv.hpp>

namespace dist::data {

namespace detail {

/// The type of the cells of a member of type `T`: an array has one cell for each element.
template <class T>
struct CellOf : std::type_identity<T> {};
template <class T, std::size_t N>
struct CellOf<std::array<T, N>> : std::type_identity<T> {};

/// Throws InvalidArgument unless there is one name for each element of an array.
void require_names(std::size_t names, std::size_t elements);

}  // namespace detail

/// Columns of CSV files, by their names in the header row, and the struct member for their cells. Made by `column` and
/// `columns`.
template <class Row, class T>
struct Column {
  /// A pointer to the struct member.
  using Member = T Row::*;
  /// The type of a cell.
  using Cell = typename detail::CellOf<T>::type;

  std::vector<std::string> names;  ///< in the header row, one for each element of an array
  Member member;                   ///< receives the cells
  /// The value of an empty cell. Not set: an empty cell must be a value of the member's type, such as an empty string.
  std::optional<Cell> if_empty;
};

/// Maps the column `name` to `member`: a number, a bool ("true" or "false" in any case, "1" or "0"), a std::string, or
/// a std::optional of these, which is empty for an empty cell. Numbers are rounded to the nearest value of the member's
/// type, too small ones to 0.
template <class Row, class T>
[[nodiscard]] Column<Row, T> column(std::string name, T Row::*member) {
  return {{std::move(name)}, member, std::nullopt};
}
/// Maps the column `name` to `member`. An empty cell has the value `if_empty`.
template <class Row, class T>
[[nodiscard]] Column<Row, T> column(std::string name, T Row::*member, std::type_identity_t<T> if_empty) {
  return {{std::move(name)}, member, std::move(if_empty)};
}
/// Maps columns to the elements of an array `member`, in the order of `names`. The elements are like members of
/// `column`. An empty cell has the value `if_empty`. Throws InvalidArgument unless there is one name for each element.
template <class Row, class T, std::size_t N>
[[nodiscard]] Column<Row, std::array<T, N>> columns(std::vector<std::string> names, std::array<T, N> Row::*member,
                                                    std::optional<std::type_identity_t<T>> if_empty = std::nullopt) {
  detail::require_names(names.size(), N);
  return {std::move(names), member, std::move(if_empty)};
}
/// Maps columns to the elements of an array `member`: `columns({"red", "green", "blue"}, &Row::color)`.
template <class Row, class T, std::size_t N, std::size_t Names>
[[nodiscard]] Column<Row, std::array<T, N>> columns(const char* const (&names)[Names], std::array<T, N> Row::*member,
                                                    std::optional<std::type_identity_t<T>> if_empty = std::nullopt) {
  static_assert(Names == N, "columns: give as many names as the array member has elements");
  return {{names, names + Names}, member, std::move(if_empty)};
}

/// The format of CSV files.
struct CsvOptions {
  char separator = ',';                               ///< between the cells of a row
  std::size_t max_bytes = io::csv_default_max_bytes;  ///< limit for one row
};

namespace detail {

/// The reason why a cell cannot be converted.
enum class CellFailure : unsigned char { none, is_empty, is_no_value, is_out_of_range };

[[nodiscard]] inline std::string_view without_blanks(std::string_view cell) {
  const std::size_t start = cell.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return cell.substr(start, cell.find_last_not_of(" \t") + 1 - start);
}

[[nodiscard]] inline bool is_word(std::string_view cell, std::string_view lower_case) {
  if (cell.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < cell.size(); ++i)
    if ((cell[i] >= 'A' && cell[i] <= 'Z' ? cell[i] + ('a' - 'A') : cell[i]) != lower_case[i]) return false;
  return true;
}

template <class T>
inline constexpr bool is_cell =
    std::same_as<T, std::string> || std::integral<T> || std::same_as<T, float> || std::same_as<T, double>;
template <class T>
inline constexpr bool is_cell<std::optional<T>> = is_cell<T>;

/// Parses `cell` into `value`.
template <class T>
[[nodiscard]] CellFailure parse_cell(std::string_view cell, T& value) {
  const std::string_view words = without_blanks(cell);
  if constexpr (std::same_as<T, std::string>) {
    value = cell;
    return CellFailure::none;
  } else if constexpr (dist::detail::is_specialization<T, std::optional>) {
    value.reset();
    return words.empty() ? CellFailure::none : parse_cell(cell, value.emplace());
  } else if constexpr (std::same_as<T, bool>) {
    if (words.empty()) return CellFailure::is_empty;
    value = words == "1" || is_word(words, "true");
    return value || words == "0" || is_word(words, "false") ? CellFailure::none : CellFailure::is_no_value;
  } else {
    if (words.empty()) return CellFailure::is_empty;
    const std::size_t sign =
        words.size() > 1 && words[0] == '+' && words[1] != '-' ? 1 : 0;  // from_chars accepts no plus sign
    const char* const end = words.data() + words.size();
    const auto [stop, error] = [&] {
      if constexpr (std::floating_point<T>)
        return dist::detail::parse_float(words.data() + sign, end, value);
      else
        return std::from_chars(words.data() + sign, end, value);
    }();
    if (stop != end) return CellFailure::is_no_value;
    if (error == std::errc::result_out_of_range) return CellFailure::is_out_of_range;
    return error == std::errc{} ? CellFailure::none : CellFailure::is_no_value;
  }
}

/// The name of a member's type in messages.
template <class T>
[[nodiscard]] constexpr std::string_view cell_type() {
  if constexpr (dist::detail::is_specialization<T, std::optional>)
    return cell_type<typename T::value_type>();
  else if constexpr (std::same_as<T, std::string>)
    return "text";
  else
    return dtype_name<T>;
}

/// One pass over the cells of the named columns, row by row. Refers to the files, options and names.
class CsvRows {
 public:
  CsvRows(const std::vector<std::string>& files, const CsvOptions& options, std::vector<std::string_view> names)
      : files_(&files), options_(&options), names_(std::move(names)), places_(names_.size()) {}

  /// Reads the next row. Returns false at the end.
  bool next();
  [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
  void seek(std::uint64_t position);

  [[nodiscard]] std::string_view cell(std::size_t column) const { return record_[places_[column]]; }
  /// Throws FileError: the cell is not a value of the column's type.
  [[noreturn]] void refuse_cell(std::size_t column, std::string_view type, CellFailure failure) const;

 private:
  using Reader = io::CsvReader<io::FileSource>;

  void open(const std::string& path);
  /// Returns the index of this column in the header row, which record_ must hold.
  [[nodiscard]] std::size_t place_of(std::string_view name) const;

  const std::vector<std::string>* files_;
  const CsvOptions* options_;
  std::vector<std::string_view> names_;
  std::vector<std::size_t> places_;  // of the columns in the file
  std::unique_ptr<Reader> reader_;   // of the file before `file_`
  std::size_t file_ = 0;
  std::size_t columns_of_file_ = 0;
  io::CsvRecord record_;
  std::uint64_t given_ = 0;
};

/// Throws InvalidArgument if `files` is empty, or if the separator is invalid.
void require_csv(const std::vector<std::string>& files, const CsvOptions& options);

}  // namespace detail

/// The rows of CSV files as structs, one file after the other. Made by `csv`.
template <class Row, class... Ts>
class CsvDataset : public DatasetRange<CsvDataset<Row, Ts...>> {
  using Columns = std::tuple<Column<Row, Ts>...>;

 public:
  using Element = Row;

  /// The source that `csv(files, options, columns...)` makes.
  CsvDataset(std::vector<std::string> files, CsvOptions options, const Column<Row, Ts>&... columns)
      : CsvDataset(std::move(files), options, std::make_shared<const Columns>(columns...)) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const CsvDataset& dataset)
        : columns_(dataset.columns_.get()), rows_(dataset.files_, dataset.options_, dataset.names()) {}

    bool next(Row& row) {
      if (!rows_.next()) return false;
      std::size_t place = 0;
      std::apply([&](const auto&... column) { (read(place, column, row.*column.member), ...); }, *columns_);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return rows_.position(); }
    /// Reads the preceding rows without parsing their cells.
    void seek(std::uint64_t position) { rows_.seek(position); }

   private:
    /// Reads the cells of a member from `place` on, and increases it by their number.
    template <class T>
    void read(std::size_t& place, const Column<Row, T>& column, T& member) {
      read_cell(place++, column.if_empty, member);
    }
    template <class T, std::size_t N>
    void read(std::size_t& place, const Column<Row, std::array<T, N>>& column, std::array<T, N>& member) {
      for (T& element : member) read_cell(place++, column.if_empty, element);
    }
    template <class T>
    void read_cell(std::size_t place, const std::optional<T>& if_empty, T& value) {
      const std::string_view cell = rows_.cell(place);
      if (if_empty && detail::without_blanks(cell).empty())
        value = *if_empty;
      else if (const auto failure = detail::parse_cell(cell, value); failure != detail::CellFailure::none)
        rows_.refuse_cell(place, detail::cell_type<T>(), failure);
    }

    const Columns* columns_;
    detail::CsvRows rows_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  /// Unknown: rows are counted in the pass.
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::unknown(); }

  [[nodiscard]] std::size_t num_files() const noexcept { return files_.size(); }
  /// The rows of every `shards`-th file, starting at file `shard` (spec I08). Throws InvalidArgument if `shard` is out
  /// of range, or if there are fewer files than shards.
  [[nodiscard]] CsvDataset shard_files(std::size_t shards, std::size_t shard) const {
    return {detail::files_of_shard(files_, shards, shard), options_, columns_};
  }

 private:
  CsvDataset(std::vector<std::string> files, CsvOptions options, std::shared_ptr<const Columns> columns)
      : files_(std::move(files)), options_(options), columns_(std::move(columns)) {}

  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    std::apply([&](const auto&... column) { (all.insert(all.end(), column.names.begin(), column.names.end()), ...); },
               *columns_);
    return all;
  }

  std::vector<std::string> files_;
  CsvOptions options_;
  std::shared_ptr<const Columns> columns_;
};

/// A dataset of the rows of CSV files (RFC 4180) as structs, whose members receive the cells of the named columns:
///
///     struct Flower { float length; float width; std::string kind; };
///     auto flowers = csv("iris.csv", column("length", &Flower::length), column("width", &Flower::width),
///                        column("kind", &Flower::kind));
///
/// `columns({"red", "green", "blue"}, &Pixel::color)` maps columns to the elements of an array.
///
/// Each file begins with a header row. Other columns are ignored, and so are blanks around numbers and bools. To batch
/// the rows, map the structs to tensors. A file is opened when the pass reaches it.
///
/// Throws InvalidArgument if `files` is empty, or if the separator is invalid. A pass throws FileError, with the file,
/// line and column, if a file is missing or malformed (see `io::CsvReader`), if the header row lacks a column or has it
/// twice, if a row has another length, or if a cell is not a value of its member's type.
template <class Row, class... Ts>
[[nodiscard]] CsvDataset<Row, Ts...> csv(std::vector<std::string> files, CsvOptions options,
                                         const Column<Row, Ts>&... columns) {
  static_assert(sizeof...(Ts) > 0, "csv: name a column and the member that takes it: column(\"name\", &Row::member)");
  static_assert((detail::is_cell<typename Column<Row, Ts>::Cell> && ...),
                "csv: the members must be numbers, bools, std::strings, std::optionals of these, or std::arrays of "
                "them: columns({\"a\", \"b\"}, &Row::array)");
  detail::require_csv(files, options);
  return {std::move(files), options, columns...};
}
/// A dataset of the rows of CSV files with comma-separated cells.
template <class Row, class... Ts>
[[nodiscard]] CsvDataset<Row, Ts...> csv(std::vector<std::string> files, const Column<Row, Ts>&... columns) {
  return csv(std::move(files), CsvOptions{}, columns...);
}
/// A dataset of the rows of one file.
template <std::convertible_to<std::string> Path, class... Arguments>
[[nodiscard]] auto csv(Path&& file, const Arguments&... arguments) {
  return csv(std::vector<std::string>(1, std::forward<Path>(file)), arguments...);
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/csv.ipp>
#endif
