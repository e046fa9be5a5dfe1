#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <dist/comm/call_sequence.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>

namespace dist {

namespace detail {

/// The precomputed contribution of the names to a call's fingerprint; 0 if unknown. Not compared.
struct HashOfNames {
  std::uint64_t value = 0;
  friend constexpr bool operator==(HashOfNames, HashOfNames) noexcept { return true; }

  [[nodiscard]] static DIST_ALWAYS_INLINE constexpr HashOfNames of(std::string_view operation,
                                                                   std::string_view reduction,
                                                                   std::string_view dtype) noexcept {
    return {hash_of(operation) * 3 + hash_of(reduction) * 5 + hash_of(dtype) * 7};
  }
};

}  // namespace detail

/// A collective call, for comparison between members and for messages.
struct CollectiveCall {
  std::string_view operation;       ///< such as "all_reduce"
  std::string_view reduction = {};  ///< such as "sum"; empty without a reduction
  std::size_t elements = 0;         ///< per member
  std::string_view dtype = {};      ///< element type
  std::size_t root = 0;             ///< of a broadcast
  std::uint64_t counts = 0;         ///< of an all_gather: checksum of the members' counts
  std::uint64_t structure = 0;      ///< hash of the structure that the values belong to; 0: none
  std::uint64_t place = 0;          ///< position in the program: CallSequence::mark()
  detail::HashOfNames names = {};   ///< optional
  /// Multiplies `structure` in the fingerprint.
  static constexpr std::uint64_t structure_factor = 0x9fb21c651e98df25U;
  /// Multiplies `place` in the fingerprint.
  static constexpr std::uint64_t place_factor = 0xff51afd7ed558ccdU;
  friend constexpr bool operator==(const CollectiveCall&, const CollectiveCall&) = default;

  /// A 64-bit hash of the call: equal for equal calls in all processes.
  [[nodiscard]] DIST_ALWAYS_INLINE std::uint64_t fingerprint() const noexcept {
    const std::uint64_t of_names =
        names.value != 0 ? names.value : detail::HashOfNames::of(operation, reduction, dtype).value;
    return of_names + elements * 0xc2b2ae3d27d4eb4fU + root * 0x165667b19e3779f9U + counts * 0xd6e8feb86659fd93U +
           structure * structure_factor + place * place_factor;
  }
};

/// Text such as "all_reduce(sum) of 12 float32" or "broadcast of 3 int32 from 1".
[[nodiscard]] std::string describe(const CollectiveCall& call);

/// A call as bytes that other processes can read. Long names are truncated; the fingerprint covers the full names.
struct CollectiveCallRecord {
  std::array<char, 32> operation{};  ///< at most 31 characters
  std::array<char, 48> reduction{};  ///< at most 47 characters; empty without a reduction
  std::array<char, 24> dtype{};      ///< at most 23 characters
  std::size_t elements = 0;          ///< per member
  std::size_t root = 0;              ///< of a broadcast
  std::uint64_t counts = 0;          ///< of an all_gather: checksum of the members' counts
  std::uint64_t structure = 0;       ///< hash of the structure that the values belong to; 0: none
  std::uint64_t place = 0;           ///< position in the program: CallSequence::mark()
  std::uint64_t fingerprint = 0;     ///< of the call with its full names

  CollectiveCallRecord() = default;
  /// Copies the names and numbers of `call`, and computes its fingerprint.
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

  /// Returns the call as views of this record.
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

/// Creates the error for members (replicas or workers) with different calls, described by `what`.
[[nodiscard]] CollectiveMismatch different_calls(std::string_view member, std::string_view what,
                                                 std::string_view more_advice = {});
/// Creates the error for members with different calls.
[[nodiscard]] CollectiveMismatch different_calls(std::string_view member, const CollectiveCall& one,
                                                 std::string_view described_one, CollectiveCall other,
                                                 std::string_view described_other);

/// Creates the error of a worker that waits for the workers `missing`, with their last call.
[[nodiscard]] DeadlineExceeded workers_missing(std::string_view missing, std::string_view described_call,
                                               std::int64_t nanoseconds, std::string_view last_call);
/// Creates the error of a worker that waits for `left`, a worker that has ended its strategy.
[[nodiscard]] CollectiveMismatch worker_left(std::string_view left, std::string_view described_call,
                                             std::string_view last_call);

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/collective_call.ipp>
#endif
