#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <dist/comm/call_sequence.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>

namespace dist {

/// What a member is about to do, for its peers to compare with what they are about to do, and for messages.
struct CollectiveCall {
  std::string_view operation;       ///< "all_reduce"
  std::string_view reduction = {};  ///< "sum"; empty where nothing is reduced
  std::size_t elements = 0;         ///< of each member
  std::string_view dtype = {};      ///< of the elements
  std::size_t root = 0;             ///< of a broadcast
  std::uint64_t counts = 0;         ///< of an all_gather: a checksum of the members' counts
  std::uint64_t structure = 0;      ///< of the values that the call is a part of; 0: of none
  std::uint64_t place = 0;          ///< where processes make it: CallSequence::mark()
  /// The fingerprint of a call with a structure and a place is that of the call without, and their products with these.
  static constexpr std::uint64_t structure_factor = 0x9fb21c651e98df25U;
  static constexpr std::uint64_t place_factor = 0xff51afd7ed558ccdU;
  friend constexpr bool operator==(const CollectiveCall&, const CollectiveCall&) = default;

  /// A number that differs for calls that differ, as far as 64 bits can, and is the same for equal ones, in whichever
  /// process.
  [[nodiscard]] DIST_ALWAYS_INLINE std::uint64_t fingerprint() const noexcept {
    return detail::hash_of(operation) * 3 + detail::hash_of(reduction) * 5 + detail::hash_of(dtype) * 7 +
           elements * 0xc2b2ae3d27d4eb4fU + root * 0x165667b19e3779f9U + counts * 0xd6e8feb86659fd93U +
           structure * structure_factor + place * place_factor;
  }
};

/// "all_reduce(sum) of 12 float32", "broadcast of 3 int32 from 1"
[[nodiscard]] std::string describe(const CollectiveCall& call);

/// A call as bytes that mean the same in another process. Names that do not fit are cut; the fingerprint is that of the
/// whole.
struct CollectiveCallRecord {
  std::array<char, 32> operation{};
  std::array<char, 48> reduction{};
  std::array<char, 24> dtype{};
  std::size_t elements = 0;
  std::size_t root = 0;
  std::uint64_t counts = 0;
  std::uint64_t structure = 0;
  std::uint64_t place = 0;
  std::uint64_t fingerprint = 0;

  CollectiveCallRecord() = default;
  explicit CollectiveCallRecord(const CollectiveCall& call) noexcept
      : elements(call.elements),
        root(call.root),
        counts(call.counts),
        structure(call.structure),
        place(call.place),
        fingerprint(call.fingerprint()) {
    store(call.operation, operation);
    store(call.reduction, reduction);
    store(call.dtype, dtype);
  }

  /// Views of this record.
  [[nodiscard]] CollectiveCall call() const noexcept {
    return {.operation = view(operation),
            .reduction = view(reduction),
            .elements = elements,
            .dtype = view(dtype),
            .root = root,
            .counts = counts,
            .structure = structure,
            .place = place};
  }

 private:
  template <std::size_t size>
  static void store(std::string_view name, std::array<char, size>& place) noexcept {
    const std::size_t length = std::min(name.size(), size - 1);
    if (length != 0) std::memcpy(place.data(), name.data(), length);
    place[length] = '\0';
  }
  template <std::size_t size>
  static std::string_view view(const std::array<char, size>& place) noexcept {
    return {place.data(), static_cast<std::size_t>(std::find(place.begin(), place.end(), '\0') - place.begin())};
  }
};

namespace detail {

/// The error of members, replicas or workers, that do not make the same call: `what` says which ones they make.
[[nodiscard]] CollectiveMismatch different_calls(std::string_view member, std::string_view what,
                                                 std::string_view more_advice = {});
/// The same error, for two calls and their descriptions.
[[nodiscard]] CollectiveMismatch different_calls(std::string_view member, const CollectiveCall& one,
                                                 std::string_view described_one, CollectiveCall other,
                                                 std::string_view described_other);

/// The error of a worker that has waited for the workers `missing`, in the described call; `last_call` is the last call
/// that those took part in.
[[nodiscard]] DeadlineExceeded workers_missing(std::string_view missing, std::string_view described_call,
                                               std::int64_t nanoseconds, std::string_view last_call);
/// The error of a worker that waits for `left`, which has left for good, in the described call.
[[nodiscard]] CollectiveMismatch worker_left(std::string_view left, std::string_view described_call,
                                             std::string_view last_call);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/collective_call.ipp>
#endif
