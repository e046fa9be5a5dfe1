#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace support {

/// Sets an environment variable during its lifetime, or unsets it if `value` is null.
class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    set(value);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) const { value == nullptr ? unsetenv(name_) : setenv(name_, value, 1); }

  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace support
