// expect: a value of this type cannot be sent: send numbers, enums
#include <dist/server/archive.hpp>

class Account {
 public:
  Account() = default;
#ifdef CONTROL
  void write_to(dist::ArchiveWriter& archive) const { archive.put(number_); }
  static Account read_from(dist::ArchiveReader& archive) {
    Account account;
    account.number_ = archive.get<int>();
    return account;
  }
#endif

 private:
  int number_ = 0;
};

int main() {
#ifdef CONTROL
  static_cast<void>(dist::from_bytes<Account>(dist::to_bytes(Account{})));
#else
  static_cast<void>(dist::from_bytes<Account>(dist::to_bytes(1)));
#endif
}
