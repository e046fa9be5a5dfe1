/// The rules of include_allow_list.txt, and a check of the includes of a tree of headers.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gates {

/// Contents of headers, by path below include/dist.
using Tree = std::map<std::string, std::string>;
using Table = std::map<std::string, std::vector<std::string>>;

struct Rules {
  Table folders, namespaces, packages, heavy, free;
  Table needs;  // of cmake/headers.txt
};

inline std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

inline Rules parse_rules(const std::string& text) {
  Rules rules;
  const std::map<std::string, Table*> sections{{"[folders]", &rules.folders},
                                               {"[namespaces]", &rules.namespaces},
                                               {"[packages]", &rules.packages},
                                               {"[heavy]", &rules.heavy},
                                               {"[free]", &rules.free}};
  Table* section = nullptr;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = sections.at(line);
      continue;
    }
    const auto colon = line.find(':');
    if (section == nullptr || colon == std::string::npos) {
      throw std::runtime_error("include_allow_list.txt: cannot read the line '" + line + "'");
    }
    // Several packages may share a line; every other section has one name before the colon.
    for (const auto& name : words(line.substr(0, colon))) (*section)[name] = words(line.substr(colon + 1));
  }
  return rules;
}

/// Parses the components that each entry of cmake/headers.txt needs.
inline Table parse_needs(const std::string& text) {
  Table needs;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (line.front() == '#') continue;
    for (const auto& entry : words(line.substr(colon + 1))) needs[entry] = words(line.substr(0, colon));
  }
  return needs;
}

/// Returns the components that a header needs, from the longest entry that is a prefix of its path.
inline std::vector<std::string> needs_of(const Table& needs, const std::string& header) {
  std::string entry = header.substr(0, header.rfind('.'));
  while (!entry.empty() && !needs.contains(entry)) {
    if (entry.back() == '/') entry.pop_back();
    entry.resize(entry.rfind('/') + 1);
  }
  return entry.empty() ? std::vector<std::string>{} : needs.at(entry);
}

/// True if `name` matches the pattern: a name, a prefix followed by *, or a folder that ends in /.
inline bool matches(std::string_view pattern, std::string_view name) {
  if (pattern == "*") return true;
  if (pattern.back() == '*') return name.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern.back() == '/') return name.starts_with(pattern);
  return pattern == name;
}

inline bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const auto& each) { return matches(each, name); });
}

/// Returns the node of a file in the graph: `x.hpp` for `x.ipp`, which has the definitions of `x.hpp` and is included
/// by it.
inline std::string node_of(const std::string& file) {
  return file.ends_with(".ipp") ? file.substr(0, file.size() - 4) + ".hpp" : file;
}

/// Returns the folder of a header below include/dist; empty for an umbrella header such as dist.hpp.
inline std::string folder_of(const std::string& header) {
  const auto slash = header.find('/');
  return slash == std::string::npos ? std::string{} : header.substr(0, slash);
}

/// Returns the full folder path below include/dist, such as "nn/layers"; empty for an umbrella header.
inline std::string path_of(const std::string& header) {
  const auto slash = header.rfind('/');
  return slash == std::string::npos ? std::string{} : header.substr(0, slash);
}
inline bool contains(const std::string& folder, const std::string& other) {
  return folder.empty() || other == folder || other.starts_with(folder + "/");
}

/// Returns the namespaces that a file opens, without trailing detail namespaces, such as "dist::nn". Each is opened and
/// closed on its own line.
inline std::set<std::string> namespaces_of(const std::string& text) {
  std::set<std::string> result;
  std::vector<std::string> open;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("}  // namespace") && !open.empty()) open.pop_back();
    if (!line.starts_with("namespace ") || !line.ends_with(" {")) continue;
    const std::string name = line.substr(10, line.size() - 12);
    open.push_back(open.empty() || name.starts_with("dist") ? name : open.back() + "::" + name);
    std::string outer = open.back();
    while (outer.ends_with("::detail")) outer.resize(outer.size() - 8);
    result.insert(outer);
  }
  return result;
}

/// Returns one line per folder, from the highest to the lowest: its name, and the folders directly below it.
inline std::string map_of(const Table& folders) {
  std::map<std::string, std::set<std::string>> reached;
  std::map<std::string, std::size_t> height;
  const auto visit = [&](const auto& self, const std::string& folder) -> void {
    if (!reached.try_emplace(folder).second) return;
    for (const auto& other : folders.at(folder)) {
      if (other == "*") continue;
      self(self, other);
      reached[folder].insert(other);
      reached[folder].insert(reached[other].begin(), reached[other].end());
      height[folder] = std::max(height[folder], height[other] + 1);
    }
  };
  std::vector<std::string> order;
  for (const auto& [folder, others] : folders) {
    visit(visit, folder);
    if (others == std::vector<std::string>{"*"}) height[folder] = folders.size();
    order.push_back(folder);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return height[a] > height[b]; });
  std::string text;
  for (const auto& folder : order) {
    std::string line = folder;
    line.resize(std::max<std::size_t>(line.size(), 12), ' ');
    for (const auto& other : folders.at(folder)) {
      const auto& all = folders.at(folder);
      if (std::none_of(all.begin(), all.end(), [&](const auto& between) { return reached[between].contains(other); }))
        line += " " + (other == "*" ? std::string{"everything"} : other);
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

struct Include {
  std::string name;
  bool quoted = false;
};

inline std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> result;
  std::istringstream in(text);
  bool compiled = false;  // only in programs with the compiled parts, whose headers need no packages
  for (std::string line; std::getline(in, line);) {
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t'; });
    if (line == "#ifdefDIST_COMPILED") compiled = true;
    if (line == "#else" || line == "#endif") compiled = false;
    if (compiled || !line.starts_with("#include")) continue;
    const auto open = line.find_first_of("<\"");
    const auto close = line.find_first_of(">\"", open + 1);
    if (open == std::string::npos || close == std::string::npos) continue;
    result.push_back({line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return result;
}

class IncludeGraph {
 public:
  IncludeGraph(const Tree& headers, const Rules& rules) : headers_(headers), rules_(rules) {
    for (const auto& [file, text] : headers_) {
      for (const auto& include : includes_of(text)) add(file, include);
    }
  }

  /// Returns one message per broken rule. `tests` has the contents of test files by path below tests/.
  std::vector<std::string> violations(const Tree& tests) {
    for (const auto& [file, text] : headers_) {
      if (file.ends_with(".ipp")) {
        check_definitions(file);
        continue;
      }
      check_folder(file);
      check_namespaces(file);
      check_foreign(file);
      check_test(file, tests);
      if (!visited_.contains(file)) find_cycles(file);
    }
    for (const auto& [header, packages] : rules_.free) check_free(header, packages);
    check_mutual();
    for (const auto& [header, targets] : edges_) check_needs(header, targets);
    for (const auto& [entry, components] : rules_.needs) check_entry(entry, components);
    return std::exchange(violations_, {});
  }

 private:
  void add(const std::string& file, const Include& include) {
    const std::string header = node_of(file);
    if (include.quoted) {
      violations_.push_back(header + " includes \"" + include.name + "\": write <dist/...>");
    } else if (!include.name.starts_with("dist/")) {
      foreign_[header].push_back(include.name);
    } else if (const auto target = include.name.substr(5); headers_.contains(target)) {
      if (target.ends_with(".ipp")) includers_[target].insert(file);
      if (node_of(target) != header) edges_[header].push_back(node_of(target));
    } else {
      violations_.push_back(header + " includes <" + include.name + ">, which does not exist");
    }
  }

  /// Requires that a file of definitions is included by its header and by one umbrella that compiles it.
  void check_definitions(const std::string& file) {
    if (folder_of(file).empty()) return;
    if (!headers_.contains(node_of(file))) {
      violations_.push_back(file + " defines what no " + node_of(file) + " declares");
      return;
    }
    std::set<std::string> includers = includers_[file];
    if (includers.erase(node_of(file)) == 0) violations_.push_back(node_of(file) + " does not include " + file);
    if (includers.size() != 1 || !folder_of(*includers.begin()).empty() || !includers.begin()->ends_with(".ipp"))
      violations_.push_back(file + " must be included by one compiled*.ipp, besides its header");
    else
      check_part(file, *includers.begin());
  }
  /// Checks the components in the name of a library part: it lists the components of its files, of which each file
  /// needs the last.
  void check_part(const std::string& file, const std::string& part) {
    std::string name = part.substr(0, part.rfind('.'));
    std::ranges::replace(name, '_', ' ');
    std::vector<std::string> components = words(name);
    components.erase(components.begin());
    const auto needs = needs_of(rules_.needs, node_of(file));
    if (needs.empty()) return;
    const bool belongs = !components.empty() && components.back() == needs.back();
    if (!belongs || !std::ranges::all_of(needs, [&](const auto& need) { return matches_any(components, need); }))
      violations_.push_back(part + " must not include " + file + ", which needs " + needs.back());
  }

  void check_folder(const std::string& header) {
    const auto folder = folder_of(header);
    if (folder.empty()) return;
    const auto allowed = rules_.folders.find(folder);
    if (allowed == rules_.folders.end()) {
      violations_.push_back(header + " is in the folder " + folder + ", which the allow-list does not name");
      return;
    }
    for (const auto& target : edges_[header]) {
      const auto other = folder_of(target);
      if (other == folder || matches_any(allowed->second, other)) continue;
      violations_.push_back(header + " includes " + target + ": " + folder + "/ may not include " +
                            (other.empty() ? "an umbrella header" : other + "/"));
    }
  }

  /// Checks the namespaces of a header by the rule of its folder, or of the nearest parent folder that has one.
  void check_namespaces(const std::string& header) {
    const std::string own = path_of(header);
    if (own.empty()) return;
    std::string ruled = own;
    while (!ruled.empty() && !rules_.namespaces.contains(ruled)) ruled = path_of(ruled);
    const std::vector<std::string> allowed =
        ruled.empty() ? std::vector<std::string>{"dist"} : rules_.namespaces.at(ruled);
    std::set<std::string> opened = namespaces_of(headers_.at(header));
    if (const auto definitions = headers_.find(header.substr(0, header.rfind('.')) + ".ipp");
        definitions != headers_.end())
      opened.merge(namespaces_of(definitions->second));
    for (const auto& name : opened)
      if (name.starts_with("dist") && !matches_any(allowed, name))
        violations_.push_back(header + " opens namespace " + name + ", which is not one of " + own + "/");
  }

  /// Forbids that two folders include each other, unless one contains the other.
  void check_mutual() {
    std::map<std::pair<std::string, std::string>, std::string> first;
    for (const auto& [header, targets] : edges_)
      for (const auto& target : targets)
        first.try_emplace({path_of(header), path_of(target)}, header + " includes " + target);
    for (const auto& [folders, sentence] : first) {
      const auto& [a, b] = folders;
      if (a >= b || contains(a, b) || contains(b, a)) continue;
      if (const auto back = first.find({b, a}); back != first.end())
        violations_.push_back("the folders " + a + " and " + b + " include each other: " + sentence + ", and " +
                              back->second);
    }
  }

  void check_needs(const std::string& header, const std::vector<std::string>& targets) {
    const auto needs = needs_of(rules_.needs, header);
    for (const auto& target : targets)
      for (const auto& component : needs_of(rules_.needs, target))
        if (!matches_any(needs, component))
          violations_.push_back("cmake/headers.txt lacks that " + header + " needs " + component +
                                ", because it includes " + target);
  }

  /// Requires that a single header's entry lists only components that its folder or its includes need.
  void check_entry(const std::string& entry, const std::vector<std::string>& components) {
    if (entry.back() == '/') return;
    for (const char* const ending : {".hpp", ".cuh", ".ipp"}) {
      if (!headers_.contains(entry + ending)) continue;
      const std::string header = node_of(entry + ending);
      const auto& foreign = foreign_[header];
      if (std::any_of(foreign.begin(), foreign.end(), [&](const auto& name) { return is_package(name); })) return;
      const auto inherited = needs_of(rules_.needs, path_of(header) + "/.");
      for (const auto& component : components)
        if (!matches_any(inherited, component) &&
            std::none_of(edges_[header].begin(), edges_[header].end(),
                         [&](const auto& target) { return matches_any(needs_of(rules_.needs, target), component); }))
          violations_.push_back("cmake/headers.txt says that " + header + " needs " + component +
                                ", and nothing that it includes does");
      return;
    }
    violations_.push_back("cmake/headers.txt names " + entry + ", which does not exist");
  }

  void check_foreign(const std::string& header) {
    const auto heavy = rules_.heavy.find(folder_of(header));
    for (const auto& name : foreign_[header]) {
      if (heavy != rules_.heavy.end() && matches_any(heavy->second, name)) {
        violations_.push_back(header + " includes <" + name + ">, which is too heavy for " + heavy->first + "/");
      }
      if (name.find_first_of("./") == std::string::npos && !is_package(name)) continue;  // the standard library
      if (!may_include(header, name)) {
        violations_.push_back(header + " includes <" + name + ">, which the allow-list does not permit there");
      }
    }
  }

  bool is_package(const std::string& name) const {
    return std::any_of(rules_.packages.begin(), rules_.packages.end(),
                       [&](const auto& entry) { return matches(entry.first, name); });
  }

  bool may_include(const std::string& header, const std::string& name) const {
    return std::any_of(rules_.packages.begin(), rules_.packages.end(), [&](const auto& entry) {
      return matches(entry.first, name) && matches_any(entry.second, header);
    });
  }

  /// Requires that a header's test includes it first, which shows that the header compiles alone.
  void check_test(const std::string& header, const Tree& tests) {
    if (folder_of(header).empty()) return;
    const auto name = header.substr(0, header.rfind('.')) + "_test.cpp";
    const auto test = tests.find(name);
    if (test == tests.end()) {
      violations_.push_back(header + " has no test: tests/" + name + " is missing");
      return;
    }
    const auto includes = includes_of(test->second);
    if (includes.empty() || includes.front().name != "dist/" + header)
      violations_.push_back("tests/" + name + " must include <dist/" + header + "> first");
  }

  void find_cycles(const std::string& header) {
    visited_.insert(header);
    path_.push_back(header);
    for (const auto& target : edges_[header]) {
      const auto start = std::find(path_.begin(), path_.end(), target);
      if (start != path_.end()) {
        std::string cycle;
        for (auto at = start; at != path_.end(); ++at) cycle += *at + " -> ";
        violations_.push_back("the headers include each other: " + cycle + target);
      } else if (!visited_.contains(target)) {
        find_cycles(target);
      }
    }
    path_.pop_back();
  }

  void check_free(const std::string& header, const std::vector<std::string>& packages) {
    std::set<std::string> seen;
    std::vector<std::string> open{header};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      if (!seen.insert(next).second) continue;
      if (next != header && matches_any(packages, "dist/" + next))
        violations_.push_back(header + " must not reach <dist/" + next + ">");
      for (const auto& name : foreign_[next]) {
        if (!matches_any(packages, name)) continue;
        violations_.push_back(header + " must need no package, but reaches <" + name + "> through " + next);
      }
      open.insert(open.end(), edges_[next].begin(), edges_[next].end());
    }
  }

  const Tree& headers_;
  const Rules& rules_;
  std::map<std::string, std::vector<std::string>> edges_, foreign_;
  std::map<std::string, std::set<std::string>> includers_;  // of files of definitions
  std::set<std::string> visited_;
  std::vector<std::string> path_;
  std::vector<std::string> violations_;
};

inline std::vector<std::string> violations(const Tree& headers, const Tree& tests, const Rules& rules) {
  return IncludeGraph(headers, rules).violations(tests);
}

}  // namespace gates
