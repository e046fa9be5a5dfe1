#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>

namespace dist {

namespace detail {
/// A visitor that takes every part, for the concept.
struct AnyVisitor {
  template <class Part>
  void operator()(std::string_view, Part&&) const {}
};
}  // namespace detail

/// Something that outlives a run and names its parts: `track(visit)` calls `visit(name, part)` for each of them, always in
/// the same order. A part is Trackable itself, or a leaf: a number of the program's, or what has a `whole(scope)` and a
/// `restore(scope, values)`, as a DistributedVariable does. The same walk saves, restores, counts and prints.
///
///     void track(auto& visit) { visit("network", network_); visit("epoch", epoch_); }
template <class X>
concept Trackable = requires(std::remove_cvref_t<X>& tracked, detail::AnyVisitor& visit) {
  tracked.track(visit);
};

/// Something Trackable that a checkpoint which was saved without it leaves as it is: `static constexpr bool may_be_absent =
/// true`. All parts of it are so, too.
template <class X>
concept MayBeAbsent = Trackable<X> && std::remove_cvref_t<X>::may_be_absent;

/// Says where in a walk a leaf lies: the names on the way to it, as in "network/dense_1/kernel".
template <class See>
class Walk {
 public:
  explicit Walk(See& see) : see_(see) {}

  /// Throws InvalidArgument for a second leaf of the same key.
  template <class Part>
  void operator()(std::string_view name, Part&& part) {
    const std::size_t length = key_.size();
    if (length > 0) key_ += '/';
    key_ += name;
    if constexpr (Trackable<Part>) {
      const bool in_optional = std::exchange(is_optional_, is_optional_ || MayBeAbsent<Part>);
      part.track(*this);
      is_optional_ = in_optional;
    } else {
      if (std::find(keys_.begin(), keys_.end(), key_) != keys_.end())
        throw InvalidArgument(concat("Two parts of what is tracked are named '", key_, "'"),
                              "one would take the place of the other", "Give one of them another name");
      keys_.push_back(key_);
      if constexpr (std::invocable<See&, std::string_view, Part&, bool>)
        see_(std::string_view{keys_.back()}, part, is_optional_);
      else
        see_(std::string_view{keys_.back()}, part);
    }
    key_.resize(length);
  }

 private:
  See& see_;
  std::string key_;
  std::vector<std::string> keys_;
  bool is_optional_ = false;  // the part in which the walk is
};

/// Calls `see(key, leaf)` for every leaf of `tracked`, or `see(key, leaf, is_optional)`, see MayBeAbsent. Keys come from the walk, not from the names of variables, so that
/// they are the same in every program that is built alike. Throws InvalidArgument for two leaves of one key.
template <Trackable Tracked, class See>
void walk(Tracked&& tracked, See&& see) {
  Walk<std::remove_reference_t<See>> visit{see};
  tracked.track(visit);
}

}  // namespace dist
