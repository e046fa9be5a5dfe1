#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/shuffle.hpp>

namespace dist::data {

namespace detail {

/// A pseudorandom permutation of the numbers below `count`, computed number by number: a Feistel network (Luby and
/// Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", 1988) of an even number of bits,
/// repeated until the result is below `count`, four times at most on average.
class IndexPermutation {
 public:
  IndexPermutation(std::uint64_t count, RandomStream random)
      : random_(random),
        count_(count),
        half_bits_(count < 3 ? 1 : (static_cast<unsigned>(std::bit_width(count - 1)) + 1) / 2) {}

  /// Requires an index below the count.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const {
    do {
      index = network(index);
    } while (index >= count_);
    return index;
  }

 private:
  [[nodiscard]] std::uint64_t network(std::uint64_t number) const {
    constexpr std::uint64_t rounds = 6;
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = number >> half_bits_, right = number & mask;
    for (std::uint64_t round = 0; round < rounds; ++round)
      left = std::exchange(right, left ^ (random_.bits(round << 32 | right) & mask));
    return left << half_bits_ | right;
  }

  RandomStream random_;
  std::uint64_t count_;
  unsigned half_bits_;
};

/// Returns the number of elements. Throws InvalidArgument unless it is known.
[[nodiscard]] std::uint64_t count_to_shuffle(Cardinality elements);

}  // namespace detail

/// The elements of `D` in the order of a permutation. Made by `index_shuffle`.
template <Dataset D>
class IndexShuffleDataset : public StepDataset<IndexShuffleDataset<D>, D> {
 public:
  using Element = ElementOf<D>;

  /// The step that `index_shuffle(seed, reshuffle)` makes.
  IndexShuffleDataset(D dataset, std::uint64_t seed, Reshuffle reshuffle)
      : StepDataset<IndexShuffleDataset, D>(std::move(dataset)), seed_(seed), reshuffle_(reshuffle) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const IndexShuffleDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)),
          count_(detail::count_to_shuffle(dataset.cardinality())),
          place_of_(count_,
                    RandomStream{dataset.seed_, stream_of(dataset.reshuffle_ == Reshuffle::each_epoch ? epoch : 0)}) {}

    bool next(Element& element) {
      if (given_ >= count_) return false;
      upstream_.seek(place_of_(given_++));
      return upstream_.next(element);
    }

    [[nodiscard]] std::uint64_t position() const noexcept { return given_; }
    void seek(std::uint64_t position) { given_ = position; }

   private:
    /// Returns the stream of random numbers of an epoch, separate from other uses of the same seed.
    static constexpr std::uint64_t stream_of(std::uint64_t epoch) { return std::uint64_t{0x696E64657873687F} ^ epoch; }

    IteratorOf<D> upstream_;
    std::uint64_t count_;
    detail::IndexPermutation place_of_;
    std::uint64_t given_ = 0;
  };

  [[nodiscard]] PartialBatches partial_batches() const { return reordered_partial_batches_of(this->dataset_); }

 private:
  std::uint64_t seed_;
  Reshuffle reshuffle_;
};

/// Returns all elements in a pseudorandom order without a buffer, for sources that `seek` to any element at once, such
/// as `token_file`, `tensor_slices` and `range` (tf.random.experimental.index_shuffle). A pass resumes at once. The
/// order depends only on `seed` and, with Reshuffle::each_epoch, the epoch. Not all orders of a few elements are
/// equally likely.
///
/// A pass throws InvalidArgument if the number of elements is unknown or infinite.
[[nodiscard]] inline auto index_shuffle(std::uint64_t seed = 0, Reshuffle reshuffle = Reshuffle::each_epoch) {
  return Pipe{[=]<Dataset D>(D dataset) {
    constexpr bool seeks = Resumable<IteratorOf<D>>;
    if constexpr (seeks)
      return IndexShuffleDataset<D>{std::move(dataset), seed, reshuffle};
    else
      static_assert(seeks,
                    "index_shuffle: the dataset must be able to seek (see data::Resumable): put it directly after the "
                    "source, or use shuffle");
  }};
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/index_shuffle.ipp>
#endif
