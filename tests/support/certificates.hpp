// Generates certificates, so that the repository contains no keys.
#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include <dist/net/tls_files.hpp>

#include "support/temporary_folder.hpp"

namespace support {

/// The content of a certificate, except the subject. Times are in seconds from now.
struct CertificateOptions {
  std::string hosts = "IP:127.0.0.1";  ///< as openssl's subjectAltName
  std::string usage = "serverAuth,clientAuth";
  long from = -3600;
  long to = 3600;
};

/// A certificate authority that signs certificates of tasks and writes them into a folder.
class Authority {
 public:
  Authority(const TemporaryFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), key_(new_key()), certificate_(X509_new()) {
    fill(*certificate_, name_, *key_, CertificateOptions{});
    extend(*certificate_, NID_basic_constraints, "critical,CA:TRUE");
    sign(*certificate_);
    file = folder_.write(name_ + ".pem", pem_of(*certificate_));
  }

  /// Returns the files of a task with a certificate that this authority has signed.
  [[nodiscard]] dist::net::TlsFiles task(const std::string& name, const CertificateOptions& options = {}) const {
    const Key key = new_key();
    const Certificate certificate{X509_new()};
    fill(*certificate, name, *key, options);
    extend(*certificate, NID_subject_alt_name, options.hosts);
    extend(*certificate, NID_ext_key_usage, options.usage);
    sign(*certificate);
    const std::string key_file = folder_.write(name + ".key", pem_of(*key));
    chmod(key_file.c_str(), S_IRUSR | S_IWUSR);
    return {file, folder_.write(name + ".pem", pem_of(*certificate)), key_file};
  }

  std::string file;  ///< its own certificate

 private:
  struct Free {
    void operator()(BIO* bio) const { BIO_free(bio); }
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  [[nodiscard]] static Key new_key() { return Key{EVP_EC_gen("P-256")}; }
  void fill(X509& certificate, const std::string& name, EVP_PKEY& key, const CertificateOptions& options) const {
    static long serial = 0;
    X509_set_version(&certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(&certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(&certificate), options.from);
    X509_gmtime_adj(X509_getm_notAfter(&certificate), options.to);
    X509_set_pubkey(&certificate, &key);
    add_name(*X509_get_subject_name(&certificate), name);
    add_name(*X509_get_issuer_name(&certificate), name_);
  }
  static void add_name(X509_NAME& to, const std::string& name) {
    X509_NAME_add_entry_by_txt(&to, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                               0);
  }
  static void extend(X509& certificate, int extension, const std::string& value) {
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, nullptr, extension, value.c_str());
    X509_add_ext(&certificate, made, -1);
    X509_EXTENSION_free(made);
  }
  void sign(X509& certificate) const { X509_sign(&certificate, key_.get(), EVP_sha256()); }

  template <class Write>
  [[nodiscard]] static std::string written(Write&& write) {
    const std::unique_ptr<BIO, Free> memory{BIO_new(BIO_s_mem())};
    write(memory.get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &bytes);
    return {bytes, static_cast<std::size_t>(size)};
  }
  [[nodiscard]] static std::string pem_of(X509& certificate) {
    return written([&](BIO* memory) { PEM_write_bio_X509(memory, &certificate); });
  }
  [[nodiscard]] static std::string pem_of(EVP_PKEY& key) {
    return written([&](BIO* memory) { PEM_write_bio_PrivateKey(memory, &key, nullptr, nullptr, 0, nullptr, nullptr); });
  }

  const TemporaryFolder& folder_;
  const std::string name_;
  const Key key_;
  const Certificate certificate_;
};

}  // namespace support
