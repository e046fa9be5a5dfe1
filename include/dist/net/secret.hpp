#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::net {

/// Warns where users besides its owner may read a file. `what` is in it: "the secret".
void warn_if_others_may_read(const std::string& path, std::string_view what);

/// The secret of the job: DIST_JOB_SECRET, else the content of the file that DIST_JOB_SECRET_FILE names, without the
/// line end after it; else empty, which means none. A file that other users may read is warned of.
/// Throws FileError, or InvalidArgument for a secret that is set and
/// empty. No error shows the secret.
[[nodiscard]] std::string job_secret();

/// A secret for a job that has none: 32 random bytes in hexadecimal digits. Throws RendezvousError.
[[nodiscard]] std::string random_secret();

/// A number that is not 0 and that nobody else draws, of the system's random bytes. Throws RendezvousError.
[[nodiscard]] std::uint64_t random_number();

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/secret.ipp>
#endif
