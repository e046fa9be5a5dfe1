#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <dist/core/light_memory.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

namespace detail {

/// Starts a pass of a generator, with the epoch if the factory takes one.
template <class Factory>
[[nodiscard]] auto start_generator(const Factory& factory, std::uint64_t epoch) {
  if constexpr (std::is_invocable_v<const Factory&, std::uint64_t>)
    return factory(epoch);
  else
    return factory();
}

/// A callable that returns callables that return `std::optional<Element>`.
template <class Factory>
inline constexpr bool is_generator_factory = [] {
  if constexpr (std::is_invocable_v<const Factory&, std::uint64_t> || std::is_invocable_v<const Factory&>) {
    using Generator = decltype(start_generator(std::declval<const Factory&>(), std::uint64_t{}));
    if constexpr (std::is_invocable_v<Generator&>)
      return dist::detail::is_specialization<std::remove_cvref_t<std::invoke_result_t<Generator&>>, std::optional>;
  }
  return false;
}();

}  // namespace detail

/// The results of a user's function. Made by `generator`.
template <class Factory>
class GeneratorDataset : public DatasetRange<GeneratorDataset<Factory>> {
  using Generator = decltype(detail::start_generator(std::declval<const Factory&>(), std::uint64_t{}));

 public:
  using Element = typename std::remove_cvref_t<std::invoke_result_t<Generator&>>::value_type;

  /// The source that `generator(factory, cardinality)` makes.
  GeneratorDataset(Factory factory, Cardinality cardinality)
      : factory_(std::move(factory)), cardinality_(cardinality) {}

  /// One pass over the results of one generator.
  class Iterator {
   public:
    Iterator(const GeneratorDataset& dataset, std::uint64_t epoch)
        : generator_(new Generator(detail::start_generator(dataset.factory_, epoch))) {}

    bool next(Element& element) {
      if (!generator_) return false;
      std::optional<Element> made = (*generator_)();
      if (!made) {
        generator_.reset();
        return false;
      }
      element = std::move(*made);
      return true;
    }

   private:
    std::unique_ptr<Generator> generator_;  // empty after the end, so that it is not called again
  };

  [[nodiscard]] Iterator iterate(std::uint64_t epoch) const { return Iterator{*this, epoch}; }
  [[nodiscard]] Cardinality cardinality() const { return cardinality_; }

 private:
  Factory factory_;
  Cardinality cardinality_;
};

/// A dataset whose elements a function makes (spec I30). Every pass calls `factory`, with the epoch if it takes one. It
/// returns a generator: a function that returns the next element as a std::optional, empty at the end.
///
///   generator([] { return [i = 0]() mutable { return i < 3 ? std::optional{i++} : std::nullopt; }; })
///
/// Exceptions propagate unchanged. `cardinality` is the cardinality to report. The elements should depend only on the
/// epoch. An element that owns memory is allocated every time; a user-defined dataset can reuse it.
template <class Factory>
[[nodiscard]] auto generator(Factory factory, Cardinality cardinality = Cardinality::unknown()) {
  constexpr bool is_factory = detail::is_generator_factory<Factory>;
  if constexpr (is_factory)
    return GeneratorDataset<Factory>{std::move(factory), cardinality};
  else
    static_assert(
        is_factory,
        "generator: give a function that creates, for every epoch, a function that returns a std::optional<Element>");
}

}  // namespace dist::data
