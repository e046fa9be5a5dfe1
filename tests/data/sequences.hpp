/// Datasets and passes for the tests of this folder.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>

namespace dist_test {

/// The numbers 0, 1, …, as elements of type int. Can report an unknown size, or throw in place of an element.
class Counting : public dist::data::DatasetRange<Counting> {
 public:
  using Element = int;
  static constexpr int never = -1;

  explicit Counting(int count, dist::data::Cardinality claimed, int throws_at = never)
      : count_(count), claimed_(claimed), throws_at_(throws_at) {}
  explicit Counting(int count, int throws_at = never)
      : Counting(count, dist::data::Cardinality::known(static_cast<std::size_t>(count)), throws_at) {}

  class Iterator {
   public:
    explicit Iterator(const Counting& dataset) : count_(dataset.count_), throws_at_(dataset.throws_at_) {}
    bool next(int& element) {
      if (next_ == throws_at_) throw std::runtime_error("the source broke");
      if (next_ == count_) return false;
      element = next_++;
      return true;
    }

   private:
    int count_;
    int throws_at_;
    int next_ = 0;
  };

  Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  dist::data::Cardinality cardinality() const { return claimed_; }

 private:
  int count_;
  dist::data::Cardinality claimed_;
  int throws_at_;
};

/// Returns the number of its epoch `count` times.
class EpochNumbers : public dist::data::DatasetRange<EpochNumbers> {
 public:
  using Element = std::uint64_t;

  explicit EpochNumbers(std::size_t count) : count_(count) {}

  class Iterator {
   public:
    Iterator(std::size_t count, std::uint64_t epoch) : left_(count), epoch_(epoch) {}
    bool next(std::uint64_t& element) {
      if (left_ == 0) return false;
      --left_;
      element = epoch_;
      return true;
    }

   private:
    std::size_t left_;
    std::uint64_t epoch_;
  };

  Iterator iterate(std::uint64_t epoch) const { return {count_, epoch}; }
  dist::data::Cardinality cardinality() const { return dist::data::Cardinality::known(count_); }

 private:
  std::size_t count_;
};

/// Returns all elements of one epoch, which must be values.
template <class D>
std::vector<typename D::Element> collect(const D& dataset, std::uint64_t epoch = 0) {
  std::vector<typename D::Element> all;
  for (const auto& element : dataset.epoch(epoch)) all.push_back(element);
  return all;
}

/// Returns a tensor of 0, 1, 2, ….
template <class T>
dist::Tensor<T> iota(dist::Shape shape) {
  dist::Tensor<T> tensor{shape};
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<T>(i);
  return tensor;
}

template <class T>
std::vector<T> values(dist::TensorView<const T> view) {
  return std::vector<T>(view.data(), view.data() + view.size());
}
template <class T>
std::vector<T> values(const dist::Tensor<T>& tensor) {
  return values(tensor.view());
}

/// The values of each replica at each step.
using Steps = std::vector<std::vector<std::vector<int>>>;

template <class Distributed>
Steps steps_of(Distributed& distributed) {
  Steps all;
  for (const auto& step : distributed) {
    auto& received = all.emplace_back();
    for (const auto& rows : step) received.push_back(values(rows));
  }
  if (distributed.cardinality().is_known()) CHECK(distributed.cardinality().count() == all.size());
  return all;
}

/// Returns true if `counter` reaches `value` in time, and then does not change.
inline bool settles_at(const std::atomic<int>& counter, int value) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (counter < value && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  return counter == value;
}

}  // namespace dist_test
