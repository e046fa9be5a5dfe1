#pragma once

#include <dist/core/error.hpp>
#include <dist/data/csv.hpp>

namespace dist::data::detail {

DIST_INLINE bool CsvRows::next() {
  for (;;) {
    if (reader_ == nullptr) {
      if (file_ == files_->size()) return false;
      open((*files_)[file_++]);
    }
    if (reader_->next(record_)) break;
    reader_.reset();
  }
  if (record_.size() != columns_of_file_)
    throw FileError(
        reader_->name(), "has a row of another length",
        concat("line ", record_.line(), " has ", record_.size(), " cells, the header row has ", columns_of_file_),
        "Correct the row, or choose the separator that the file uses");
  ++given_;
  return true;
}

DIST_INLINE void CsvRows::seek(std::uint64_t position) {
  if (position < given_) *this = CsvRows{*files_, *options_, std::move(names_)};
  while (given_ < position && next()) continue;
}

DIST_INLINE void CsvRows::open(const std::string& path) {
  reader_ = std::make_unique<Reader>(io::FileSource{path}, options_->separator, options_->max_bytes);
  if (!reader_->next(record_))
    throw FileError(path, "has no header row", "it is empty", "Begin the file with the names of its columns");
  columns_of_file_ = record_.size();
  for (std::size_t column = 0; column < names_.size(); ++column) places_[column] = place_of(names_[column]);
}

DIST_INLINE std::size_t CsvRows::place_of(std::string_view name) const {
  std::size_t place = record_.size();
  std::string names;
  for (std::size_t i = 0; i < record_.size(); ++i) {
    names += concat(i == 0 ? "" : ", ", record_[i]);
    if (record_[i] != name) continue;
    if (place != record_.size())
      throw FileError(reader_->name(), concat("has two columns called ", quoted(name)),
                      concat("columns ", place + 1, " and ", i + 1, " of its header row"),
                      "Give each column a unique name");
    place = i;
  }
  if (place == record_.size())
    throw FileError(reader_->name(), concat("has no column ", quoted(name)),
                    concat("its header row has: ", printable(names, 400)),
                    "Name one of these, or choose the separator that the file uses");
  return place;
}

DIST_INLINE void CsvRows::refuse_cell(std::size_t column, std::string_view type, CellFailure failure) const {
  const std::string& path = reader_->name();
  const std::string place =
      concat("line ", record_.line(), ", column ", places_[column] + 1, " (", quoted(names_[column]), ")");
  if (failure == CellFailure::is_empty)
    throw FileError(path, "has an empty cell", place,
                    "Give column(...) a third argument, the value of empty cells, or make the member a std::optional");
  throw FileError(path,
                  concat(failure == CellFailure::is_no_value ? "has a cell that is not a valid "
                                                             : "has a cell out of the range of ",
                         type),
                  concat(place, ": ", quoted(cell(column))), "Correct the cell, or give the member another type");
}

DIST_INLINE void require_names(std::size_t names, std::size_t elements) {
  if (names != elements)
    throw InvalidArgument("columns cannot fill an array member",
                          concat(names, " names given, the array has ", elements, " elements"),
                          "Give one name for each element");
}

DIST_INLINE void require_csv(const std::vector<std::string>& files, const CsvOptions& options) {
  if (files.empty()) throw InvalidArgument("csv has nothing to read", "the list of files is empty", "Name a file");
  if (std::string_view{"\"\r\n"}.find(options.separator) != std::string_view::npos)
    throw InvalidArgument("csv cannot separate cells",
                          concat("the separator is ", quoted(std::string_view{&options.separator, 1})),
                          "Use a comma, a semicolon or a tab");
}

}  // namespace dist::data::detail
