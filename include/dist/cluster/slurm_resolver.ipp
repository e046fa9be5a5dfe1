#pragma once

#include <dist/cluster/address.hpp>
#include <dist/cluster/slurm_resolver.hpp>
#include <dist/core/error.hpp>

namespace dist {

DIST_INLINE ClusterSpec SlurmResolver::cluster_spec() const {
  const Step step = read_step();
  const std::size_t base = port_base();
  std::vector<std::string> addresses;
  for (std::size_t node = 0; node < step.hosts.size(); ++node)
    for (std::size_t local = 0; local < step.tasks[node]; ++local) {
      if (base + local > 65535)
        throw InvalidArgument(concat("Slurm's node ", step.hosts[node], " has more tasks than there are ports"),
                              concat(step.tasks[node], " tasks from port ", base, " on"), "Choose a lower port_base");
      addresses.push_back(to_string(Address{step.hosts[node], static_cast<std::uint16_t>(base + local)}));
    }
  ClusterSpec cluster;
  std::size_t next = 0;
  for (const auto& [type, count] : jobs(addresses.size()))
    for (std::size_t index = 0; index < count; ++index) cluster.add(Task{type, index}, addresses[next++]);
  return cluster;
}

DIST_INLINE std::optional<Task> SlurmResolver::task() const {
  const Step step = read_step();
  std::size_t place = place_in(step);
  for (const auto& [type, count] : jobs(step.size())) {
    if (place < count) return Task{type, place};
    place -= count;
  }
  return std::nullopt;
}

DIST_INLINE std::size_t SlurmResolver::number(const char* name) const {
  return environment_.require_number(name, why, suggestion);
}

DIST_INLINE SlurmResolver::Step SlurmResolver::read_step() const {
  Step step{expand_host_list(environment_.require("SLURM_STEP_NODELIST", why, suggestion)),
            expand_tasks_per_node(environment_.require("SLURM_STEP_TASKS_PER_NODE", why, suggestion))};
  const std::size_t announced = number("SLURM_STEP_NUM_TASKS");
  if (step.hosts.size() != step.tasks.size() || step.size() != announced)
    throw InvalidArgument(
        "Slurm's variables contradict each other",
        concat("SLURM_STEP_NODELIST has ", step.hosts.size(), " hosts, SLURM_STEP_TASKS_PER_NODE has ", step.size(),
               " tasks on ", step.tasks.size(), ", SLURM_STEP_NUM_TASKS is ", announced),
        "Start with srun, and pass all its variables on unchanged");
  return step;
}

DIST_INLINE std::size_t SlurmResolver::place_in(const Step& step) const {
  if (!environment_.get("SLURM_NODEID") && !environment_.get("SLURM_LOCALID")) {
    const std::size_t rank = number("SLURM_PROCID");
    if (rank >= step.size()) refuse_place(concat("SLURM_PROCID=", rank, ", but the step has ", step.size(), " tasks"));
    return rank;
  }
  const std::size_t node = number("SLURM_NODEID");
  const std::size_t local = number("SLURM_LOCALID");
  if (node >= step.hosts.size() || local >= step.tasks[node])
    refuse_place(concat("SLURM_NODEID=", node, " and SLURM_LOCALID=", local, ", but the step has ", step.hosts.size(),
                        " nodes",
                        node < step.hosts.size() ? concat(" and ", step.tasks[node], " tasks on this one") : ""));
  return std::accumulate(step.tasks.begin(), step.tasks.begin() + static_cast<std::ptrdiff_t>(node), local);
}

DIST_INLINE void SlurmResolver::refuse_place(const std::string& given) {
  throw InvalidArgument("This process is not among the tasks of its Slurm step", given,
                        "Start with srun, and pass all its variables on");
}

DIST_INLINE std::size_t SlurmResolver::port_base() const {
  if (options_.port_base) return *options_.port_base;
  std::optional<std::size_t> job = environment_.number("SLURM_JOB_ID");
  if (!job) job = number("SLURM_JOBID");
  return 50000 + *job % 10000;
}

DIST_INLINE std::vector<std::pair<TaskType, std::size_t>> SlurmResolver::jobs(std::size_t available) const {
  if (options_.jobs.empty()) return {{TaskType::worker, available}};
  std::vector<std::pair<TaskType, std::size_t>> counts;
  std::size_t wanted = 0;
  for (const TaskType type : {TaskType::chief, TaskType::evaluator, TaskType::parameter_server, TaskType::worker})
    if (const auto found = options_.jobs.find(type); found != options_.jobs.end()) {
      counts.push_back(*found);
      wanted += found->second;
    }
  if (wanted > available)
    throw InvalidArgument(concat("Requested ", wanted, " tasks but only ", available, " were assigned"),
                          concat("SLURM_STEP_NUM_TASKS is ", available), concat("Start with srun -n ", wanted));
  return counts;
}

namespace detail {

/// Parses a host list: names with bracketed lists of numbers and ranges, separated by commas.
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
    throw InvalidArgument(concat("The host list ", quoted(list_, 200), " of ", source_, " cannot be read"),
                          concat("near character ", list_.size() - rest_.size() + 1, ": ", why),
                          "Write it as Slurm does, such as node[01-03,7],login");
  }
  [[noreturn]] void refuse_size() const { refuse(concat("it expands to more than ", host_list_max_hosts, " hosts")); }

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

  /// Returns the names of one item of the list.
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
            refuse(concat("the name of a host is longer than ", host_list_max_name, " characters"));
        }
      started = std::move(longer);
    }
    if (rest_.size() == before) refuse("the name of a host was expected");
    return started;
  }

  /// Returns the numbers between brackets, after the opening bracket.
  [[nodiscard]] std::vector<std::string> numbers() {
    std::vector<std::string> all;
    do {
      const std::string_view low_digits = until("-,[]");
      const std::string_view high_digits = accept('-') ? until("-,[]") : low_digits;
      const std::optional<std::size_t> low = whole_number(low_digits, most);
      const std::optional<std::size_t> high = whole_number(high_digits, most);
      if (!low || !high) refuse("a number or a range such as 1-3 was expected in the brackets");
      if (*low > *high) refuse(concat("the range ", low_digits, "-", high_digits, " is empty"));
      if (*high - *low >= host_list_max_hosts - all.size()) refuse_size();
      for (std::size_t number = *low; number <= *high; ++number) {
        const std::string digits = concat(number);
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
    throw InvalidArgument(concat("The task counts ", quoted(list, 200), " of ", source, " cannot be read"), why,
                          "Write them as Slurm does, such as 3(x2),2,1");
  };
  std::vector<std::size_t> counts;
  for (std::string_view rest = list; !list.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t bracket = item.find("(x");
    const bool repeated = bracket != std::string_view::npos;
    if (repeated && !item.ends_with(')')) refuse(concat(quoted(item, 40), " has no ')' at its end"));
    const auto count = detail::whole_number(item.substr(0, bracket), host_list_max_hosts);
    const auto times =
        repeated ? detail::whole_number(item.substr(bracket + 2, item.size() - bracket - 3), host_list_max_hosts)
                 : std::optional<std::size_t>{1};
    if (!count || !times || *count == 0 || *times == 0)
      refuse(concat(quoted(item, 40), " is not a count from 1 to ", host_list_max_hosts,
                    ", or one with a repetition such as 3(x2)"));
    if (counts.size() + *times > host_list_max_hosts) refuse(concat("more than ", host_list_max_hosts, " nodes"));
    counts.insert(counts.end(), *times, *count);
    if (item.size() == rest.size()) break;
    rest.remove_prefix(item.size() + 1);
  }
  return counts;
}

}  // namespace dist
