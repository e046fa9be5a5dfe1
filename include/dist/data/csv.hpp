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

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/parse_float.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/files.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/csv.hpp>

namespace dist::data {

/// A column of CSV files, by its name in the header row, and the member of the rows that takes its cells. Made by `column`.
template <class Row, class T>
struct Column {
  using Member = T Row::*;

  std::string name;
  Member member;
  std::optional<T> if_empty;
};

/// The column `name`, whose cells become `member`: a number, a bool ("true" or "false" in any case, "1" or "0"), a
/// std::string, or a std::optional of one, which has no value for an empty cell. A number becomes the nearest one of the
/// member's type, 0 where it is too small.
template <class Row, class T>
[[nodiscard]] Column<Row, T> column(std::string name, T Row::*member) {
  return {std::move(name), member, std::nullopt};
}
/// The same, and what an empty cell stands for.
template <class Row, class T>
[[nodiscard]] Column<Row, T> column(std::string name, T Row::*member, std::type_identity_t<T> if_empty) {
  return {std::move(name), member, std::move(if_empty)};
}

/// How CSV files are written.
struct CsvOptions {
  char separator = ',';
  std::size_t max_bytes = io::csv_default_max_bytes;  ///< of a row
};

namespace detail {

/// How a cell did not become a value.
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

/// Writes what `cell` says over `value`.
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
        words.size() > 1 && words[0] == '+' && words[1] != '-' ? 1 : 0;  // from_chars takes no plus
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

/// What messages call the values of a member.
template <class T>
[[nodiscard]] constexpr std::string_view cell_type() {
  if constexpr (dist::detail::is_specialization<T, std::optional>)
    return cell_type<typename T::value_type>();
  else if constexpr (std::same_as<T, std::string>)
    return "text";
  else
    return dtype_name<T>;
}

/// Throws FileError for a cell that is no value of its column's type.
[[noreturn]] inline void refuse_cell(const std::string& path, std::string_view type, std::string_view place,
                                     std::string_view cell, CellFailure failure) {
  if (failure == CellFailure::is_empty)
    throw FileError(
        path, "has an empty cell", place,
        "Give column(...) a third argument, what empty cells stand for, or let the member be a std::optional");
  throw FileError(
      path,
      concat(failure == CellFailure::is_no_value ? "has a cell that is no " : "has a cell out of the range of ", type),
      concat(place, ": ", quoted(cell)), "Correct the cell, or give the member another type");
}

}  // namespace detail

/// The rows of CSV files as structs, one file after the other. Made by `csv`.
template <class Row, class... Ts>
class CsvDataset : public DatasetRange<CsvDataset<Row, Ts...>> {
 public:
  using Element = Row;

  CsvDataset(std::vector<std::string> files, CsvOptions options, std::tuple<Column<Row, Ts>...> columns)
      : files_(std::move(files)), options_(options), columns_(std::move(columns)) {}

  class Iterator {
   public:
    explicit Iterator(const CsvDataset& dataset) : dataset_(&dataset) {}

    bool next(Row& row) {
      if (!read()) return false;
      take_cells(row);
      return true;
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    /// Rows before are read again, but their cells are not looked at.
    void seek(std::uint64_t position) {
      if (position < given_) *this = Iterator{*dataset_};
      while (given_ < position && read()) continue;
    }

   private:
    using Reader = io::CsvReader<io::FileSource>;

    /// Reads the next row into record_.
    bool read() {
      for (;;) {
        if (reader_ == nullptr) {
          if (file_ == dataset_->files_.size()) return false;
          open(dataset_->files_[file_++]);
        }
        if (reader_->next(record_)) break;
        reader_.reset();
      }
      if (record_.size() != columns_of_file_)
        throw FileError(
            reader_->name(), "has a row of another length",
            concat("line ", record_.line(), " has ", record_.size(), " cells, the header row has ", columns_of_file_),
            "Correct the row, or choose the separator that the file has");
      ++given_;
      return true;
    }

    void open(const std::string& path) {
      reader_ =
          std::make_unique<Reader>(io::FileSource{path}, dataset_->options_.separator, dataset_->options_.max_bytes);
      if (!reader_->next(record_))
        throw FileError(path, "has no header row", "it is empty", "Begin the file with the names of its columns");
      columns_of_file_ = record_.size();
      each_column([&]<std::size_t I>() { places_[I] = place_of(std::get<I>(dataset_->columns_).name); });
    }

    /// Which column of the header row in record_ has this name.
    [[nodiscard]] std::size_t place_of(std::string_view name) const {
      std::size_t place = record_.size();
      std::string names;
      for (std::size_t i = 0; i < record_.size(); ++i) {
        names += concat(i == 0 ? "" : ", ", record_[i]);
        if (record_[i] != name) continue;
        if (place != record_.size())
          throw FileError(reader_->name(), concat("has two columns called ", quoted(name)),
                          concat("columns ", place + 1, " and ", i + 1, " of its header row"),
                          "Give each column a name of its own");
        place = i;
      }
      if (place == record_.size())
        throw FileError(reader_->name(), concat("has no column ", quoted(name)),
                        concat("its header row has: ", printable(names, 400)),
                        "Name one of these, or choose the separator that the file has");
      return place;
    }

    void take_cells(Row& row) const {
      each_column([&]<std::size_t I>() {
        const auto& column = std::get<I>(dataset_->columns_);
        using T = std::tuple_element_t<I, std::tuple<Ts...>>;
        const std::string_view cell = record_[places_[I]];
        T& member = row.*column.member;
        if (column.if_empty && detail::without_blanks(cell).empty()) {
          member = *column.if_empty;
          return;
        }
        if (const auto failure = detail::parse_cell(cell, member); failure != detail::CellFailure::none) {
          detail::refuse_cell(
              reader_->name(), detail::cell_type<T>(),
              concat("line ", record_.line(), ", column ", places_[I] + 1, " (", quoted(column.name), ")"), cell,
              failure);
        }
      });
    }

    static void each_column(auto&& body) {
      [&]<std::size_t... I>(std::index_sequence<I...>) { (body.template operator()<I>(), ...); }
      (std::index_sequence_for<Ts...>{});
    }

    const CsvDataset* dataset_;
    std::unique_ptr<Reader> reader_;  // of the file before `file_`
    std::size_t file_ = 0;
    std::size_t columns_of_file_ = 0;
    std::array<std::size_t, sizeof...(Ts)> places_{};  // of the columns in the file
    io::CsvRecord record_;
    std::uint64_t given_ = 0;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  /// Rows are only counted by reading them.
  [[nodiscard]] Cardinality cardinality() const { return Cardinality::unknown(); }

  [[nodiscard]] std::size_t num_files() const noexcept { return files_.size(); }
  /// The rows of every `shards`-th file from file `shard` on: what one of `shards` workers reads (spec I08). Throws
  /// InvalidArgument when there is no such shard, and when there are fewer files than shards.
  [[nodiscard]] CsvDataset shard_files(std::size_t shards, std::size_t shard) const {
    return {detail::files_of_shard(files_, shards, shard), options_, columns_};
  }

 private:
  std::vector<std::string> files_;
  CsvOptions options_;
  std::tuple<Column<Row, Ts>...> columns_;
};

/// A dataset of the rows of CSV files (RFC 4180) as structs, whose members take the cells of the columns that are named:
///
///     struct Flower { float length; float width; std::string kind; };
///     auto flowers = csv("iris.csv", column("length", &Flower::length), column("width", &Flower::width),
///                        column("kind", &Flower::kind));
///
/// Each file begins with a header row; its columns may be in any order, and there may be others. Blanks around numbers and
/// truth values do not count. To be batched, map the structs to tensors. The files are opened when their turn comes.
///
/// Throws InvalidArgument for no files and for a separator that is none and, while iterating, FileError, which names the
/// file, the line and the column, when a file is missing, as `io::CsvReader` does, for a column that the header row does
/// not have or has twice, for a row of another length, and for a cell that is no value of its member's type.
template <class Row, class... Ts>
[[nodiscard]] CsvDataset<Row, Ts...> csv(std::vector<std::string> files, CsvOptions options,
                                         Column<Row, Ts>... columns) {
  static_assert(sizeof...(Ts) > 0, "csv: name a column and the member that takes it: column(\"name\", &Row::member)");
  static_assert((detail::is_cell<Ts> && ...),
                "csv: the members must be numbers, bools, std::strings, or std::optionals of these");
  if (files.empty()) throw InvalidArgument("csv has nothing to read", "the list of files is empty", "Name a file");
  if (std::string_view{"\"\r\n"}.find(options.separator) != std::string_view::npos)
    throw InvalidArgument("csv cannot separate cells",
                          concat("the separator is ", quoted(std::string_view{&options.separator, 1})),
                          "Use a comma, a semicolon or a tab");
  return {std::move(files), options, {std::move(columns)...}};
}
template <class Row, class... Ts>
[[nodiscard]] CsvDataset<Row, Ts...> csv(std::vector<std::string> files, Column<Row, Ts>... columns) {
  return csv(std::move(files), CsvOptions{}, std::move(columns)...);
}
/// A dataset of the rows of one file.
template <std::convertible_to<std::string> Path, class... Arguments>
[[nodiscard]] auto csv(Path&& file, Arguments... arguments) {
  return csv(std::vector<std::string>(1, std::forward<Path>(file)), std::move(arguments)...);
}

}  // namespace dist::data
