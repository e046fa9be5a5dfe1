#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>
#include <dist/net/certificate.hpp>
#include <dist/net/tls_files.hpp>
#include <dist/rpc/grpc/api.hpp>

/// How connections of gRPC are encrypted: by TLS on both sides, where a job has certificates.
namespace dist::grpc {

struct CredentialsReleaser {
  void operator()(grpc_channel_credentials* credentials) const { grpc_channel_credentials_release(credentials); }
  void operator()(grpc_server_credentials* credentials) const { grpc_server_credentials_release(credentials); }
};
using ChannelCredentials = std::unique_ptr<grpc_channel_credentials, CredentialsReleaser>;
using ServerCredentials = std::unique_ptr<grpc_server_credentials, CredentialsReleaser>;

/// Throws as net::read_identity does.
[[nodiscard]] inline ChannelCredentials channel_credentials(const net::TlsFiles& files) {
  if (files.empty()) return ChannelCredentials{grpc_insecure_credentials_create()};
  const net::TlsIdentity own = net::read_identity(files, net::TlsRole::client);
  grpc_ssl_pem_key_cert_pair pair{own.key.c_str(), own.certificate.c_str()};
  return ChannelCredentials{grpc_ssl_credentials_create_ex(own.authorities.c_str(), &pair, nullptr, nullptr)};
}
/// Those of a server that hears nobody without a certificate of the job. Throws as net::read_identity does.
[[nodiscard]] inline ServerCredentials server_credentials(const net::TlsFiles& files) {
  if (files.empty()) return ServerCredentials{grpc_insecure_server_credentials_create()};
  const net::TlsIdentity own = net::read_identity(files, net::TlsRole::server);
  grpc_ssl_pem_key_cert_pair pair{own.key.c_str(), own.certificate.c_str()};
  return ServerCredentials{grpc_ssl_server_credentials_create_ex(
      own.authorities.c_str(), &pair, 1, GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, nullptr)};
}

/// What is wrong with a server that this process, with these files, does not believe, where the core says so of a connection that
/// failed; else nothing.
[[nodiscard]] inline std::optional<std::string> distrust(std::string_view details, const net::TlsFiles& files) {
  const auto says = [&](std::string_view words) { return details.find(words) != std::string_view::npos; };
  if (says("is not in peer certificate"))
    return concat(
        "its certificate is for another host: list tasks by the names in their certificates, or name the one that all "
        "have in DIST_TLS_SERVER_NAME; ",
        details);
  if (!says("Ssl handshake failed")) return std::nullopt;
  if (says("certificate verify failed"))
    return concat("its certificate is not signed by an authority in ", files.authorities, ", or out of date; ",
                  details);
  if (says("wrong version number"))
    return concat(
        "it does not speak TLS: start all tasks of the job with certificates, as DIST_TLS_CERT_FILE names one; ",
        details);
  return concat("it does not agree on TLS; ", details);
}
/// What the core says of a connection that failed, and what that may mean where the other side has closed it: a server that
/// refuses a client does not say so.
[[nodiscard]] inline std::string failed_connection(std::string_view details, const net::TlsFiles& files) {
  std::string why{details};
  if (details.find("failed to connect") == std::string_view::npos ||
      details.find("Socket closed") == std::string_view::npos)
    return why;
  return concat(why, files.empty()
                         ? ": if the server asks for TLS, this task needs certificates, as DIST_TLS_CERT_FILE names one"
                         : concat(": the server may not believe the certificate in ", files.certificate));
}

}  // namespace dist::grpc
