#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/data/batch_size.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

/// The order of the epochs: the same, or a new one in each epoch (spec I31).
enum class Reshuffle : bool { never, each_epoch };

/// The elements of `D` in random order. Made by `shuffle`.
template <Dataset D>
class ShuffleDataset : public StepDataset<ShuffleDataset<D>, D> {
  static_assert(!data::lends_elements<D>,
                "shuffle keeps elements for several steps, but these elements are valid for one step only: put shuffle "
                "before the dataset is distributed");

 public:
  using Element = ElementOf<D>;

  /// The step that `shuffle(buffer_size, seed, reshuffle)` makes.
  ShuffleDataset(D dataset, std::size_t buffer_size, std::uint64_t seed, Reshuffle reshuffle)
      : StepDataset<ShuffleDataset, D>(std::move(dataset)),
        buffer_size_(buffer_size),
        seed_(seed),
        reshuffle_(reshuffle) {}

  /// One pass over the dataset.
  class Iterator {
   public:
    Iterator(const ShuffleDataset& dataset, std::uint64_t epoch)
        : upstream_(dataset.dataset_.iterate(epoch)),
          random_(dataset.seed_, stream_of(dataset.reshuffle_ == Reshuffle::each_epoch ? epoch : 0)),
          capacity_(dataset.buffer_size_),
          expected_(dataset.expected()),
          all_(dataset.cardinality()) {}

    [[nodiscard]] std::uint64_t position() const noexcept { return drawn_; }
    /// Repeats the random draws on element numbers, then reads only the elements in the buffer. Reads all preceding
    /// elements if their number is unknown.
    void seek(std::uint64_t position) requires Resumable<IteratorOf<D>> {
      upstream_.seek(0);
      buffer_.clear();
      drawn_ = 0;
      filled_ = exhausted_ = false;
      if (all_ == Cardinality::unknown()) {
        for (Element skipped{}; drawn_ < position && next(skipped);) continue;
        return;
      }
      const std::uint64_t end = all_.is_known() ? all_.count() : std::numeric_limits<std::uint64_t>::max();
      std::vector<std::uint64_t> numbers(static_cast<std::size_t>(std::min<std::uint64_t>(capacity_, end)));
      std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
      std::uint64_t read = numbers.size();
      for (; drawn_ < position && !numbers.empty(); ++drawn_) {
        std::uint64_t& pick = numbers[random_.below(numbers.size(), drawn_)];
        if (read < end) {
          pick = read++;
        } else {
          pick = numbers.back();
          numbers.pop_back();
        }
      }
      buffer_.resize(numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        upstream_.seek(numbers[i]);
        static_cast<void>(upstream_.next(buffer_[i]));
      }
      upstream_.seek(read);
      filled_ = true;
    }

    bool next(Element& element) {
      if (!filled_) fill();
      if (buffer_.empty()) return false;
      Element& pick = buffer_[random_.below(buffer_.size(), drawn_++)];
      std::swap(element, pick);
      if (exhausted_ || !upstream_.next(pick)) {
        exhausted_ = true;
        if (&pick != &buffer_.back()) pick = std::move(buffer_.back());
        buffer_.pop_back();
      }
      return true;
    }

   private:
    /// Returns the stream of random numbers of an epoch, separate from other uses of the same seed.
    static constexpr std::uint64_t stream_of(std::uint64_t epoch) { return std::uint64_t{0x73687566666C6500} ^ epoch; }

    /// Not inlined: called once per pass.
    [[gnu::noinline]] void fill() {
      buffer_.reserve(expected_);
      while (buffer_.size() < capacity_ && !exhausted_) {
        buffer_.emplace_back();
        exhausted_ = !upstream_.next(buffer_.back());
        if (exhausted_) buffer_.pop_back();
      }
      filled_ = true;
    }

    IteratorOf<D> upstream_;
    RandomStream random_;
    std::vector<Element> buffer_;
    std::size_t capacity_;
    std::size_t expected_;
    Cardinality all_;
    std::uint64_t drawn_ = 0;
    bool filled_ = false;
    bool exhausted_ = false;
  };

  [[nodiscard]] PartialBatches partial_batches() const { return reordered_partial_batches_of(this->dataset_); }
  /// Returns the same shuffle over `make(upstream)`.
  template <class Make>
  [[nodiscard]] auto over(Make make) && {
    return data::ShuffleDataset<decltype(make(std::move(this->dataset_)))>{make(std::move(this->dataset_)),
                                                                           buffer_size_, seed_, reshuffle_};
  }

 private:
  /// The number of elements that the buffer will hold; 0 if unknown.
  [[nodiscard]] std::size_t expected() const {
    const Cardinality all = this->dataset_.cardinality();
    if (!all.is_known()) return 0;
    return all.count() < buffer_size_ ? all.count() : buffer_size_;
  }

  std::size_t buffer_size_;
  std::uint64_t seed_;
  Reshuffle reshuffle_;
};

/// Keeps a buffer of `buffer_size` elements and returns a uniformly random one, which the next element of the dataset
/// replaces. A buffer of the size of the dataset makes all permutations equally likely. The order depends only on
/// `seed` and, with Reshuffle::each_epoch, the epoch. Throws InvalidArgument if `buffer_size` is 0.
[[nodiscard]] inline auto shuffle(std::size_t buffer_size, std::uint64_t seed = 0,
                                  Reshuffle reshuffle = Reshuffle::each_epoch) {
  if (buffer_size == 0)
    throw InvalidArgument("shuffle has an empty buffer", "buffer_size is 0",
                          "Use 1 to keep the order, or the number of examples to shuffle them all");
  return Pipe{[=]<Dataset D>(D dataset) {
    return ShuffleDataset<D>{std::move(dataset), buffer_size, seed, reshuffle};
  }};
}

}  // namespace dist::data
