#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>

namespace dist {

namespace detail {
/// A visitor that accepts all parts, for the concept.
struct AnyVisitor {
  template <class Part>
  void operator()(std::string_view, Part&&) const {}
};
}  // namespace detail

/// An object with named parts: `track(visit)` calls `visit(name, part)` for each part, always in the same order. A part
/// is Trackable, or a leaf: a number, or an object with `whole(scope)` and `restore(scope, values)`, such as a
/// DistributedVariable. One walk serves to save, restore, count and print.
///
///     void track(auto& visit) { visit("network", network_); visit("epoch", epoch_); }
template <class X>
concept Trackable = requires(std::remove_cvref_t<X>& tracked, detail::AnyVisitor& visit) {
  tracked.track(visit);
};

/// A Trackable that a restore leaves unchanged if the checkpoint does not contain it: `static constexpr bool
/// may_be_absent = true`. This includes all its parts.
template <class X>
concept MayBeAbsent = Trackable<X> && std::remove_cvref_t<X>::may_be_absent;

namespace detail {

/// The path of names to the current part of a walk, such as "network/dense_1/kernel".
class WalkPath {
 public:
  /// Enters a part. Returns the argument for `end`.
  std::size_t begin(std::string_view name);
  void end(std::size_t length) { key_.resize(length); }
  /// Returns the key of the current leaf, valid until the next leaf. Throws InvalidArgument if the key already
  /// occurred.
  std::string_view leaf();

 private:
  std::string key_;
  std::vector<std::string> keys_;
};

}  // namespace detail

/// The visitor of a walk.
template <class See>
class Walk {
 public:
  /// Calls `see` for each leaf of the walk.
  explicit Walk(See& see) : see_(see) {}

  /// Throws InvalidArgument if a second leaf has the same key.
  template <class Part>
  void operator()(std::string_view name, Part&& part) {
    const std::size_t length = path_.begin(name);
    if constexpr (Trackable<Part>) {
      const bool in_optional = std::exchange(is_optional_, is_optional_ || MayBeAbsent<Part>);
      part.track(*this);
      is_optional_ = in_optional;
    } else if constexpr (std::invocable<See&, std::string_view, Part&, bool>) {
      see_(path_.leaf(), part, is_optional_);
    } else {
      see_(path_.leaf(), part);
    }
    path_.end(length);
  }

 private:
  See& see_;
  detail::WalkPath path_;
  bool is_optional_ = false;  // the current part may be absent
};

/// Calls `see(key, leaf)` or `see(key, leaf, is_optional)` (see MayBeAbsent) for each leaf of `tracked`. Keys consist
/// of the names in the walk, and do not depend on the names of variables. Throws InvalidArgument if two leaves have the
/// same key.
template <Trackable Tracked, class See>
void walk(Tracked&& tracked, See&& see) {
  Walk<std::remove_reference_t<See>> visit{see};
  tracked.track(visit);
}

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/track.ipp>
#endif
