#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/host_list.hpp>
#include <dist/cluster/whole_number.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>

namespace dist {

namespace detail {

/// Reads a host list: names with commas, each with any number of brackets that hold numbers and ranges.
class HostListParser {
 public:
  HostListParser(std::string_view list, std::string_view source) : list_(list), source_(source), rest_(list) {}

  [[nodiscard]] std::vector<std::string> parse() {
    std::vector<std::string> hosts;
    if (list_.empty()) return hosts;
    do {
      const std::vector<std::string> more = names();
      if (hosts.size() + more.size() > host_list_max_hosts) refuse_size();
      hosts.insert(hosts.end(), more.begin(), more.end());
    } while (accept(','));
    if (!rest_.empty()) refuse("a ']' has no '['");
    return hosts;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw InvalidArgument(text("The host list ", quoted(list_, 200), " of ", source_, " cannot be read"),
                          text("near character ", list_.size() - rest_.size() + 1, ": ", why),
                          "Write it as Slurm does, such as node[01-03,7],login");
  }
  [[noreturn]] void refuse_size() const { refuse(text("it stands for more than ", host_list_max_hosts, " hosts")); }

  [[nodiscard]] bool accept(char wanted) {
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] std::string_view until(std::string_view any) {
    const std::string_view part = rest_.substr(0, std::min(rest_.find_first_of(any), rest_.size()));
    rest_.remove_prefix(part.size());
    return part;
  }

  /// The names that one item between two commas stands for.
  [[nodiscard]] std::vector<std::string> names() {
    std::vector<std::string> started{""};
    const std::size_t before = rest_.size();
    while (!rest_.empty() && rest_[0] != ',' && rest_[0] != ']') {
      const std::vector<std::string> endings = accept('[') ? numbers() : std::vector{std::string(until(",[]"))};
      if (started.size() * endings.size() > host_list_max_hosts) refuse_size();
      std::vector<std::string> longer;
      for (const std::string& start : started)
        for (const std::string& ending : endings) {
          longer.push_back(start + ending);
          if (longer.back().size() > host_list_max_name)
            refuse(text("the name of a host is longer than ", host_list_max_name, " characters"));
        }
      started = std::move(longer);
    }
    if (rest_.size() == before) refuse("the name of a host was expected");
    return started;
  }

  /// What stands between brackets, after the first one.
  [[nodiscard]] std::vector<std::string> numbers() {
    std::vector<std::string> all;
    do {
      const std::string_view low_digits = until("-,[]");
      const std::string_view high_digits = accept('-') ? until("-,[]") : low_digits;
      const std::optional<std::size_t> low = whole_number(low_digits, most);
      const std::optional<std::size_t> high = whole_number(high_digits, most);
      if (!low || !high) refuse("a number or a range such as 1-3 was expected in the brackets");
      if (*low > *high) refuse(text("the range ", low_digits, "-", high_digits, " is empty"));
      if (*high - *low >= host_list_max_hosts - all.size()) refuse_size();
      for (std::size_t number = *low; number <= *high; ++number) {
        const std::string digits = text(number);
        const std::size_t zeros = low_digits.size() - std::min(low_digits.size(), digits.size());
        if (zeros + digits.size() > host_list_max_name) refuse("a number has too many digits");
        all.push_back(std::string(zeros, '0') + digits);
      }
    } while (accept(','));
    if (!accept(']')) refuse("a ']' was expected");
    return all;
  }

  static constexpr std::size_t most = 1'000'000'000'000;

  std::string_view list_;
  std::string_view source_;
  std::string_view rest_;
};

}  // namespace detail

DIST_INLINE std::vector<std::string> expand_host_list(std::string_view list, std::string_view source) {
  return detail::HostListParser{list, source}.parse();
}

DIST_INLINE std::vector<std::size_t> expand_tasks_per_node(std::string_view list, std::string_view source) {
  const auto refuse = [&](std::string_view why) {
    throw InvalidArgument(text("The task counts ", quoted(list, 200), " of ", source, " cannot be read"), why,
                          "Write them as Slurm does, such as 3(x2),2,1");
  };
  std::vector<std::size_t> counts;
  for (std::string_view rest = list; !list.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t bracket = item.find("(x");
    const bool repeated = bracket != std::string_view::npos;
    if (repeated && !item.ends_with(')')) refuse(text(quoted(item, 40), " has no ')' at its end"));
    const auto count = detail::whole_number(item.substr(0, bracket), host_list_max_hosts);
    const auto times =
        repeated ? detail::whole_number(item.substr(bracket + 2, item.size() - bracket - 3), host_list_max_hosts)
                 : std::optional<std::size_t>{1};
    if (!count || !times || *count == 0 || *times == 0)
      refuse(text(quoted(item, 40), " is not a count from 1 to ", host_list_max_hosts,
                  ", or one with a repetition such as 3(x2)"));
    if (counts.size() + *times > host_list_max_hosts) refuse(text("more than ", host_list_max_hosts, " nodes"));
    counts.insert(counts.end(), *times, *count);
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  return counts;
}

}  // namespace dist
