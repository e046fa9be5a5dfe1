#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::net {

/// Warns if users other than its owner may read a file with `what`: "the secret".
void warn_if_others_may_read(const std::string& path, std::string_view what);

/// Returns the job's secret: DIST_JOB_SECRET, else the content of the file DIST_JOB_SECRET_FILE without the line end;
/// empty if neither is set. Warns of a file that others may read. Throws FileError, or InvalidArgument for an empty
/// secret. Errors never show the secret.
[[nodiscard]] std::string job_secret();

/// 32 random bytes in hexadecimal digits. Throws RendezvousError.
[[nodiscard]] std::string random_secret();

/// A unique random number other than 0. Throws RendezvousError.
[[nodiscard]] std::uint64_t random_number();

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/secret.ipp>
#endif
