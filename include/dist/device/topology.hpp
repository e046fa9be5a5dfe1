#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/device/cpu_id.hpp>

namespace dist {

namespace detail {

/// The text of a file without the end of its last line; empty if the file cannot be read, or is longer than any list.
[[nodiscard]] std::string text_of_file(const std::string& name);

}  // namespace detail

/// What `processors` share, as the system tells it in the files under `root`. Where it tells nothing (a container, an
/// older kernel) or nothing sensible, each processor is a core of its own, on one node of one package; that is no
/// error.
[[nodiscard]] Topology read_topology(std::span<const std::size_t> processors,
                                     const std::string& root = "/sys/devices/system");

/// Those of `processors`, in their order, that the list in a file of the system names ("0-3,8"); none where there is no such
/// list.
[[nodiscard]] std::vector<std::size_t> listed_processors(std::span<const std::size_t> processors,
                                                         const std::string& file);

/// An order of `places`, by their positions, of which any first R are a good choice for R replicas:
/// - a core takes a second replica only after every core has one, and faster kinds of cores come first;
/// - replicas are near each other: the cores of one cache are taken before the next cache of the same node, those of one
///   node before the next node, those of one package before the next package, and where there are most cores first;
/// - what nothing distinguishes stays in its order.
///
/// Near each other, because replicas meet in memory several times per step, and sums that stay within one cache are a
/// multiple faster than what comes from another. Work that waits for memory rather than for its peers may want the
/// opposite, the bandwidth of all nodes: name the devices then.
[[nodiscard]] std::vector<std::size_t> placement_order(const Topology& places);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/topology.ipp>
#endif
