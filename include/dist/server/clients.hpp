#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/server/client.hpp>

namespace dist::server {

/// The clients of a process for all parameter servers of a job: one for each, made when it is first asked for. Thread-safe.
template <class T>
class Clients {
 public:
  Clients(std::vector<net::Endpoint> servers, ClientOptions options)
      : endpoints_(std::move(servers)), options_(std::move(options)), clients_(endpoints_.size()) {}
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return endpoints_.size(); }
  [[nodiscard]] const std::vector<net::Endpoint>& endpoints() const noexcept { return endpoints_; }

  /// The client of server `index` for variables that were made on this incarnation of it (Client::incarnation). Another one
  /// replaces it when variables of another incarnation are used. Throws InvalidArgument for a number that no server has.
  [[nodiscard]] std::shared_ptr<Client<T>> of(std::size_t index, std::uint64_t incarnation) {
    const std::lock_guard lock{mutex_};
    if (index >= clients_.size())
      throw InvalidArgument(concat("There is no parameter server ", index), concat("the job has ", clients_.size()),
                            "Use variables with the servers that they were made on");
    Cached& kept = clients_[index];
    if (!kept.client || kept.incarnation != incarnation) {
      ClientOptions options = options_;
      options.incarnation = incarnation;
      kept = {std::make_shared<Client<T>>(index, endpoints_[index], std::move(options)), incarnation};
    }
    return kept.client;
  }

 private:
  struct Cached {
    std::shared_ptr<Client<T>> client;
    std::uint64_t incarnation = 0;
  };

  const std::vector<net::Endpoint> endpoints_;
  const ClientOptions options_;
  std::mutex mutex_;
  std::vector<Cached> clients_;
};

}  // namespace dist::server
