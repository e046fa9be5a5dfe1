#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/comm/communicator.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/structure.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

/// A scope for the collectives of a structure's members: members of the group whose structures differ get an error
/// instead of exchanging mismatched values. Each call carries the form of the type; the members first compare which
/// optionals have a value. Free for types other than structures, and in a group of one.
template <class Collectives>
class AgreedStructure {
  static constexpr bool is_alone = CollectivesOfOne<Collectives>;

 public:
  /// `member` names a member in messages: "replica". Throws ShapeMismatch if optionals have a value on some members
  /// only. A collective call for values with optionals.
  template <class Value>
  AgreedStructure(const Collectives& collectives, std::string_view member, const Value& value)
      : collectives_(collectives) {
    if constexpr (!is_alone && holds_optional<Value>()) require_equal_optionals(member, value);
    set_form<Value>();
  }
  /// Compares only the form of the type, for a broadcast, in which optionals take the root's form.
  template <class Value>
  AgreedStructure(const Collectives& collectives, std::type_identity<Value>) : collectives_(collectives) {
    set_form<Value>();
  }
  AgreedStructure(const AgreedStructure&) = delete;
  AgreedStructure& operator=(const AgreedStructure&) = delete;
  ~AgreedStructure() {
    if constexpr (!is_alone)
      if (is_set_) collectives_.communicator().set_structure(0);
  }

 private:
  template <class Value>
  void set_form() {
    if constexpr (!is_alone && structure_of<Value>() != 0) {
      collectives_.communicator().set_structure(structure_of<Value>());
      is_set_ = true;
    }
  }

  struct Optionals {
    std::uint64_t count = 0;
    std::uint64_t with_value = 0;  // of the first 64, one bit each
    std::uint64_t fingerprint = 0;
  };

  template <class Value>
  void require_equal_optionals(std::string_view member, const Value& value) const {
    Optionals mine;
    for_each_optional(value, [&](bool has_value) {
      if (mine.count < 64 && has_value) mine.with_value |= std::uint64_t{1} << mine.count;
      mine.fingerprint = mine.fingerprint * 3 + (has_value ? 2 : 1);
      ++mine.count;
    });
    PerReplica<Optionals> all(collectives_.communicator().size());
    collectives_.all_gather_values("structure with optionals", mine, std::span<Optionals>{all.begin(), all.size()});
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (all[rank].count == all[0].count && all[rank].with_value == all[0].with_value &&
          all[rank].fingerprint == all[0].fingerprint)
        continue;
      std::size_t first = 0;
      while (first < 64 && (all[rank].with_value >> first & 1) == (all[0].with_value >> first & 1)) ++first;
      const bool has_value = first < 64 && (all[0].with_value >> first & 1) != 0;
      throw ShapeMismatch(
          concat("The ", member, "s gave values with different structures"),
          concat("on ", member, " 0 optional ", first, has_value ? " has a value" : " has none", ", on ", member, " ",
                 rank, has_value ? " it has none" : " it has one", "; optionals are counted from 0, outer ones first"),
          concat("Give an optional a value on every ", member, " or on none"));
    }
  }

  const Collectives& collectives_;
  bool is_set_ = false;
};

}  // namespace dist::detail
