#pragma once

#include <dist/server/archive.hpp>

namespace dist::detail {

inline constexpr std::string_view one_program = "Start all processes of the job from one build of the program";

DIST_INLINE void refuse_deep_lists() {
  throw InvalidArgument("A value cannot be sent", text("it has more than ", deepest_list, " lists in each other"),
                        "Send its parts in one list, with numbers instead of lists in lists");
}
DIST_INLINE void refuse_short_archive(std::string_view what, std::string_view type, std::uint64_t wanted,
                                      std::uint64_t left) {
  throw ArchiveError(text(what, " ends early"), text(wanted, " bytes of ", type, " were expected, ", left, " are left"),
                     one_program);
}
DIST_INLINE void refuse_long_list(std::string_view what, std::string_view type, std::uint64_t elements,
                                  std::uint64_t left) {
  throw ArchiveError(text(what, " announces too much"),
                     text("a ", type, " of ", elements, " elements, for which ", left, " bytes are too few"),
                     one_program);
}
DIST_INLINE void refuse_long_archive(std::string_view what, std::uint64_t left) {
  throw ArchiveError(text(what, " is longer than its values"), text(left, " bytes are left"), one_program);
}
DIST_INLINE void refuse_value(std::string_view what, std::string_view type, std::string_view why) {
  throw ArchiveError(text(what, " has what is no ", type), why, one_program);
}

}  // namespace dist::detail
