/// Type-erased passes over datasets, so that code between source and consumer is compiled once.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include <dist/core/light_memory.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data::detail {

/// The operations of an element type, for type-erased code.
struct ElementOps {
  void* (*make)();
  void (*destroy)(void* element) noexcept;
  void (*exchange)(void* a, void* b);
};

template <class Element>
inline constexpr ElementOps element_ops{
    .make = []() -> void* { return new Element{}; },
    .destroy = [](void* element) noexcept { delete static_cast<Element*>(element); },
    .exchange =
        [](void* a, void* b) {
          using std::swap;
          swap(*static_cast<Element*>(a), *static_cast<Element*>(b));
        }};

/// A type-erased element. Its address is stable when this object moves.
class AnyElement {
 public:
  explicit AnyElement(const ElementOps& ops) : ops_(&ops), element_(ops.make()) {}
  AnyElement(AnyElement&& other) noexcept : ops_(other.ops_), element_(std::exchange(other.element_, nullptr)) {}
  AnyElement& operator=(AnyElement&& other) noexcept {
    std::swap(ops_, other.ops_);
    std::swap(element_, other.element_);
    return *this;
  }
  ~AnyElement() {
    if (element_ != nullptr) ops_->destroy(element_);
  }

  [[nodiscard]] void* get() noexcept { return element_; }
  [[nodiscard]] const void* get() const noexcept { return element_; }

 private:
  const ElementOps* ops_;
  void* element_;
};

/// A type-erased ElementIterator. `element` points to an object of the dataset's element type.
class AnyPass {
 public:
  AnyPass() = default;
  AnyPass(const AnyPass&) = delete;
  AnyPass& operator=(const AnyPass&) = delete;
  virtual ~AnyPass() = default;
  virtual bool next(void* element) = 0;
};

template <Dataset D>
class PassOf final : public AnyPass {
 public:
  PassOf(const D& dataset, std::uint64_t epoch) : iterator_(dataset.iterate(epoch)) {}
  /// Not inlined, even if this is the only pass of a program.
  [[gnu::noinline]] bool next(void* element) override { return iterator_.next(*static_cast<ElementOf<D>*>(element)); }
  void seek(std::uint64_t position) { iterator_.seek(position); }

 private:
  IteratorOf<D> iterator_;
};

/// A dataset whose passes are type-erased.
template <class D>
concept MakesAnyPass = requires(const D& dataset, std::uint64_t number) {
  { dataset.any_pass(number) } -> std::same_as<std::unique_ptr<AnyPass>>;
};

/// Starts a pass over a dataset. Not inlined, because the code is large and often needed in several places.
template <Dataset D>
[[nodiscard, gnu::noinline]] std::unique_ptr<AnyPass> any_pass(const D& dataset, std::uint64_t epoch) {
  if constexpr (MakesAnyPass<D>)
    return dataset.any_pass(epoch);
  else
    return std::make_unique<PassOf<D>>(dataset, epoch);
}
/// Starts a pass over a dataset at element `position`.
template <Dataset D>
  requires Resumable<IteratorOf<D>>
[[nodiscard]] std::unique_ptr<AnyPass> any_pass(const D& dataset, std::uint64_t epoch, std::uint64_t position) {
  if constexpr (MakesAnyPass<D>) {
    return dataset.any_pass(epoch, position);
  } else {
    auto pass = std::make_unique<PassOf<D>>(dataset, epoch);
    pass->seek(position);
    return pass;
  }
}

/// A reference to a dataset whose type is erased.
class AnyDataset {
 public:
  explicit AnyDataset(const ElementOps& element) : element_(&element) {}

  [[nodiscard]] const ElementOps& element() const noexcept { return *element_; }
  [[nodiscard]] virtual Cardinality cardinality() const = 0;
  [[nodiscard]] virtual std::unique_ptr<AnyPass> iterate(std::uint64_t epoch, std::uint64_t position) const = 0;

 protected:
  ~AnyDataset() = default;

 private:
  const ElementOps* element_;
};

/// The positions at which passes may begin.
enum class PassBegin : bool { first_element, any_element };

template <Dataset D, PassBegin begin>
class DatasetRef final : public AnyDataset {
 public:
  explicit DatasetRef(const D& dataset) : AnyDataset(element_ops<ElementOf<D>>), dataset_(dataset) {}
  [[nodiscard]] Cardinality cardinality() const override { return dataset_.cardinality(); }
  [[nodiscard]] std::unique_ptr<AnyPass> iterate(std::uint64_t epoch, std::uint64_t position) const override {
    if constexpr (begin == PassBegin::any_element && Resumable<IteratorOf<D>>)
      if (position > 0) return any_pass(dataset_, epoch, position);
    auto pass = any_pass(dataset_, epoch);
    for (AnyElement skipped{element()}; position > 0 && pass->next(skipped.get());) --position;
    return pass;
  }

 private:
  const D& dataset_;
};

}  // namespace dist::data::detail
