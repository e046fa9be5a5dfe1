#pragma once

#include <exception>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>  // ExitCode, too

namespace dist {

/// The status for an error that has reached `main`: Error::exit_code, and ExitCode::failure for other exceptions.
///
///     } catch (const std::exception& error) {
///       std::fprintf(stderr, "%s\n", error.what());
///       return dist::exit_code(error);
///     }
[[nodiscard]] int exit_code(const std::exception& error) noexcept;

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/core/exit_code.ipp>
#endif
