#pragma once

#include <array>
#include <cmath>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/preprocessing.hpp>

namespace dist::data {

namespace detail {

DIST_INLINE void require_list(std::string_view part, const Shape& shape) {
  if (shape.rank() != 1)
    throw ShapeMismatch(concat("The saved ", part, " of a preprocessing step are not a list"),
                        concat("their shape is ", shape), "Restore a checkpoint that the same step was saved to");
}

DIST_INLINE std::size_t LearntWords::find(std::string_view word) const {
  const auto place = std::lower_bound(sorted_.begin(), sorted_.end(), word,
                                      [&](std::size_t at, std::string_view wanted) { return words_[at] < wanted; });
  return place != sorted_.end() && words_[*place] == word ? *place : words_.size();
}

DIST_INLINE void LearntWords::assign(std::vector<std::string> words) {
  words_ = std::move(words);
  sorted_.resize(words_.size());
  for (std::size_t i = 0; i < sorted_.size(); ++i) sorted_[i] = i;
  std::sort(sorted_.begin(), sorted_.end(), [&](std::size_t a, std::size_t b) { return words_[a] < words_[b]; });
}

DIST_INLINE std::vector<std::uint8_t> LearntWords::text() const {
  std::vector<std::uint8_t> bytes;
  for (const std::string& word : words_) {
    bytes.insert(bytes.end(), word.begin(), word.end());
    bytes.push_back(0);
  }
  return bytes;
}

DIST_INLINE void LearntWords::restore_text(std::span<const std::uint8_t> bytes) {
  std::vector<std::string> words;
  std::string word;
  for (const std::uint8_t byte : bytes) {
    if (byte == 0)
      words.push_back(std::exchange(word, {}));
    else
      word += static_cast<char>(byte);
  }
  assign(std::move(words));
}

DIST_INLINE void require_class(std::size_t number, std::size_t count) {
  if (number >= count)
    throw InvalidArgument("one_hot has no place for a number",
                          concat("it is ", number, ", the places are 0 to ", count - 1),
                          "Give one_hot more places, or StringLookup fewer tokens");
}

}  // namespace detail

DIST_INLINE void Normalization::Sums::add(std::span<const double> example) {
  if (count == 0) {
    mean.assign(example.size(), 0);
    squares.assign(example.size(), 0);
  }
  if (example.size() != mean.size())
    throw ShapeMismatch(
        "Normalization cannot adapt to examples of different sizes",
        concat("the first one has ", mean.size(), " features, example ", count, " has ", example.size()),
        "Give each example the same features");
  ++count;
  for (std::size_t i = 0; i < example.size(); ++i) {
    const double distance = example[i] - mean[i];
    mean[i] += distance / static_cast<double>(count);
    squares[i] += distance * (example[i] - mean[i]);
  }
}

DIST_INLINE void Normalization::adapt_to(const Sums& sums) {
  if (sums.count == 0)
    throw InvalidArgument("Normalization cannot adapt", "the dataset has no examples", "Give it the training data");
  mean_.values = sums.mean;
  variance_.values = sums.squares;
  for (double& variance : variance_.values) variance /= static_cast<double>(sums.count);
}

DIST_INLINE void Normalization::require_features(std::size_t count) const {
  if (mean_.values.empty() && count > 0)
    throw InvalidArgument("Normalization has no statistics", "it has neither adapted to data nor been restored",
                          "Call adapt with the training data, or restore the checkpoint that has it");
  if (count != mean_.values.size() || count != variance_.values.size())
    throw ShapeMismatch("Normalization got an example of another size",
                        concat("it has ", count, " features, the data of adapt had ", mean_.values.size()),
                        "Give the features that it adapted to");
}

DIST_INLINE double Normalization::deviation(std::size_t feature) const {
  return std::fmax(std::sqrt(variance_.values[feature]), 1e-7);
}

DIST_INLINE std::size_t StringLookup::operator()(std::string_view word) const {
  const std::size_t place = words_.find(word);
  return place == words_.words().size() ? 0 : place + 1;
}

DIST_INLINE std::string_view StringLookup::word(std::size_t number) const {
  if (number >= size())
    throw InvalidArgument("StringLookup has no such number",
                          concat("it is ", number, ", the numbers are 0 to ", size() - 1),
                          "Give a number that it returned for a word");
  return number == 0 ? std::string_view{"[UNK]"} : words_.words()[number - 1];
}

DIST_INLINE void StringLookup::adapt_to(std::vector<std::string> all) {
  std::sort(all.begin(), all.end());
  std::vector<std::pair<std::size_t, std::string>> counted;
  for (std::string& word : all) {
    if (word.find('\0') != std::string::npos)
      throw InvalidArgument("StringLookup cannot number a word", "it contains a zero byte", "Remove the byte");
    if (counted.empty() || counted.back().second != word)
      counted.emplace_back(1, std::move(word));
    else
      ++counted.back().first;
  }
  std::sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return b < a; });
  if (max_tokens_ > 0 && counted.size() > max_tokens_ - 1) counted.resize(max_tokens_ - 1);
  std::vector<std::string> words;
  for (auto& [count, word] : counted) words.push_back(std::move(word));
  words_.assign(std::move(words));
}

DIST_INLINE void CharacterLookup::adapt(std::string_view text) {
  std::array<bool, 256> occurs{};
  for (const char byte : text) occurs[static_cast<std::uint8_t>(byte)] = true;
  bytes_.values.clear();
  for (std::size_t byte = 0; byte < occurs.size(); ++byte)
    if (occurs[byte]) bytes_.values.push_back(static_cast<std::uint8_t>(byte));
}

DIST_INLINE std::vector<std::int32_t> CharacterLookup::encode(std::string_view text) const {
  std::array<std::int32_t, 256> number_of;
  number_of.fill(-1);
  for (std::size_t number = 0; number < size(); ++number)
    number_of[bytes_.values[number]] = static_cast<std::int32_t>(number);
  std::vector<std::int32_t> numbers(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    numbers[i] = number_of[static_cast<std::uint8_t>(text[i])];
    if (numbers[i] < 0)
      throw InvalidArgument("CharacterLookup has no number for a byte",
                            concat(quoted(text.substr(i, 1)), " at position ", i, " is not one of its ", size()),
                            "Adapt it to a text with this byte, or remove the byte");
  }
  return numbers;
}

DIST_INLINE std::string CharacterLookup::decode(std::span<const std::int32_t> numbers) const {
  std::string text(numbers.size(), '\0');
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 0 || static_cast<std::size_t>(numbers[i]) >= size())
      throw InvalidArgument("CharacterLookup has no byte for a number",
                            concat(numbers[i], " at position ", i, ", the vocabulary has ", size(), " bytes"),
                            "Give numbers that encode returned");
    text[i] = static_cast<char>(bytes_.values[static_cast<std::size_t>(numbers[i])]);
  }
  return text;
}

}  // namespace dist::data
