#pragma once

#if !__has_include(<openssl/x509.h>)
#error "<openssl/x509.h> of OpenSSL was not found: install libssl-dev, and link dist::crypto (without CMake: -lcrypto)"
#endif

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/net/secret.hpp>
#include <dist/net/tls_files.hpp>

namespace dist::net {

/// The end of a TLS connection; certificates may be restricted to one of them.
enum class TlsRole { client, server };

/// The content of TlsFiles.
struct TlsIdentity {
  std::string authorities;  ///< PEM text of all authorities
  std::string certificate;  ///< PEM text of the certificate and intermediate ones
  std::string key;          ///< PEM text of the private key
};

namespace detail {

/// Frees OpenSSL objects.
struct OpenSslDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* check) const { X509_STORE_CTX_free(check); }
};
template <class T>
using OpenSslPointer = std::unique_ptr<T, OpenSslDeleter>;

/// The longest PEM file, in bytes.
inline constexpr std::size_t longest_pem = 1 << 20;

[[nodiscard, gnu::cold]] inline std::string read_pem(const std::string& path) {
  io::FileSource source{path};
  std::string pem(longest_pem, '\0');
  pem.resize(io::read_full(source, std::as_writable_bytes(std::span{pem})));
  if (pem.size() == longest_pem)
    throw FileError(path, "is too long for certificates", "1 MiB or more", "Use a PEM file");
  return pem;
}

[[nodiscard, gnu::cold]] inline OpenSslPointer<BIO> memory_of(const std::string& pem) {
  return OpenSslPointer<BIO>{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

[[nodiscard, gnu::cold]] inline std::vector<OpenSslPointer<X509>> certificates_in(const std::string& path,
                                                                                  const std::string& pem) {
  const OpenSslPointer<BIO> memory = memory_of(pem);
  std::vector<OpenSslPointer<X509>> all;
  while (X509* const next = PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr)) all.emplace_back(next);
  const bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;  // at the end of every file
  ERR_clear_error();
  if (all.empty() || !whole)
    throw FileError(path, all.empty() ? "holds no certificate" : "holds something that is not a certificate",
                    "only blocks from BEGIN CERTIFICATE to END CERTIFICATE are read", "Use a PEM file of certificates");
  return all;
}

[[nodiscard, gnu::cold]] inline OpenSslPointer<EVP_PKEY> key_in(const std::string& path, const std::string& pem) {
  // Otherwise OpenSSL prompts for a password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  OpenSslPointer<EVP_PKEY> key{PEM_read_bio_PrivateKey(memory_of(pem).get(), nullptr, no_password, nullptr)};
  ERR_clear_error();
  if (!key)
    throw FileError(
        path, "holds no readable private key",
        pem.find("ENCRYPTED") == std::string::npos ? "it has no private key in PEM" : "a password protects it",
        "Use a PEM file with a private key, without a password");
  return key;
}

/// "/CN=worker 0, valid from Nov 20 12:00:00 2026 GMT to Nov 27 12:00:00 2026 GMT"
[[nodiscard, gnu::cold]] inline std::string describe(const X509& certificate) {
  const OpenSslPointer<BIO> memory{BIO_new(BIO_s_mem())};
  X509_NAME_print_ex(memory.get(), X509_get_subject_name(&certificate), 0, XN_FLAG_RFC2253);
  BIO_puts(memory.get(), ", valid from ");
  ASN1_TIME_print(memory.get(), X509_get0_notBefore(&certificate));
  BIO_puts(memory.get(), " to ");
  ASN1_TIME_print(memory.get(), X509_get0_notAfter(&certificate));
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

/// Throws unless peers with the same authorities accept the certificate.
inline void require_believed(const TlsFiles& files, const std::vector<OpenSslPointer<X509>>& authorities,
                             const std::vector<OpenSslPointer<X509>>& chain, TlsRole role) {
  const OpenSslPointer<X509_STORE> store{X509_STORE_new()};
  for (const auto& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);  // like gRPC
  STACK_OF(X509)* const between = sk_X509_new_null();
  for (const auto& certificate : chain) sk_X509_push(between, certificate.get());
  const OpenSslPointer<X509_STORE_CTX> check{X509_STORE_CTX_new()};
  X509_STORE_CTX_init(check.get(), store.get(), chain.front().get(), between);
  X509_STORE_CTX_set_purpose(check.get(), role == TlsRole::server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const bool believed = X509_verify_cert(check.get()) == 1;
  sk_X509_free(between);
  ERR_clear_error();
  if (believed) return;
  const X509* const refused = X509_STORE_CTX_get_current_cert(check.get());
  const X509& blamed = refused == nullptr ? static_cast<const X509&>(*chain.front()) : *refused;
  throw FileError(files.certificate, "holds a certificate that all tasks of the job reject",
                  concat(X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())), ": ", describe(blamed)),
                  concat("Use one that an authority in ", files.authorities,
                         " has signed, for servers and clients, and that has not expired by this machine's clock"));
}

}  // namespace detail

/// Reads and verifies the files, so that errors name them, instead of failing connections. Throws FileError if a file
/// cannot be read or is not PEM, the key has a password or does not match, or the certificate is out of date, not
/// signed by an authority of the job, or not valid for this role. Throws InvalidArgument like `validate`.
[[nodiscard, gnu::cold]] inline TlsIdentity read_identity(const TlsFiles& files, TlsRole role) {
  validate(files);
  TlsIdentity identity{detail::read_pem(files.authorities), detail::read_pem(files.certificate),
                       detail::read_pem(files.key)};
  warn_if_others_may_read(files.key, "the key");
  const auto authorities = detail::certificates_in(files.authorities, identity.authorities);
  const auto chain = detail::certificates_in(files.certificate, identity.certificate);
  const auto key = detail::key_in(files.key, identity.key);
  const bool fits = X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits)
    throw FileError(
        files.key, "holds the key of another certificate",
        concat("the certificate in ", files.certificate, " is for ", detail::describe(*chain.front())),
        "Use the certificate that was made for this key, and put the task's own certificate first in its file");
  detail::require_believed(files, authorities, chain, role);
  return identity;
}

}  // namespace dist::net
