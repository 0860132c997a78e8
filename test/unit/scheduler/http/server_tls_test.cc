// TLS on the server: which handshakes it takes, its limits behind one, and certificates that
// change.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/fakes/certificates.h"
#include "test/unit/scheduler/http/server_fixture.h"

namespace tranche::http {
namespace THIS_FILE {

using fakes::KeyPair;

// Says what a test wants over TLS; 5 s without an answer are an end.
class TlsClient {
 public:
  struct How {
    std::string ca_pem;
    int highest = TLS1_3_VERSION;
    const KeyPair* own = nullptr;  // a client certificate
    int lowest = 0;                // the library's own
    std::string ciphers = "";      // of TLS 1.2 and older; empty: the library's own
  };

  TlsClient(uint16_t port, const How& how) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_max_proto_version(context_.get(), how.highest);
    if (how.lowest != 0) SSL_CTX_set_min_proto_version(context_.get(), how.lowest);
    // Whatever the library can do at all, so that a refusal is the server's.
    SSL_CTX_set_security_level(context_.get(), 0);
    if (!how.ciphers.empty()) SSL_CTX_set_cipher_list(context_.get(), how.ciphers.c_str());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), ReadCertificate(how.ca_pem).get());
    if (how.own != nullptr) {
      SSL_CTX_use_certificate(context_.get(), ReadCertificate(how.own->certificate_pem).get());
      const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
          BIO_new_mem_buf(how.own->key_pem.data(), -1), BIO_free);
      EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr);
      SSL_CTX_use_PrivateKey(context_.get(), key);
      EVP_PKEY_free(key);
    }
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{5, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_);
    connected_ = SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }
  ~TlsClient() {
    ssl_.reset();
    if (socket_ >= 0) ::close(socket_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }
  std::string cipher() const { return SSL_get_cipher_name(ssl_.get()); }
  std::string ServerSerial() const {
    const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(ssl_.get()),
                                                            X509_free);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    X509_digest(shown.get(), EVP_sha256(), digest.data(), &size);
    return {digest.begin(), digest.begin() + size};
  }

  // The status of the answer; 0: none came.
  int Ask(std::string_view request) {
    if (SSL_write(ssl_.get(), request.data(), static_cast<int>(request.size())) <= 0) return 0;
    return Read();
  }
  void Send(std::string_view bytes) {
    if (connected_) SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  int Read() {
    std::size_t end = 0;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive()) return 0;
    }
    const std::size_t at = received_.find("Content-Length: ");
    const std::size_t length = at < end ? std::stoul(received_.substr(at + 16)) : 0;
    while (received_.size() < end + 4 + length) {
      if (!Receive()) return 0;
    }
    const int status = std::stoi(received_.substr(9, 3));
    body = received_.substr(end + 4, length);
    received_.erase(0, end + 4 + length);
    return status;
  }
  // True when the server said that nothing more comes (close_notify), not merely hung up.
  bool EndedProperly() {
    while (Receive()) {
    }
    return last_error_ == SSL_ERROR_ZERO_RETURN;
  }

  std::string body;

 private:
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
  static Certificate ReadCertificate(const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), -1), BIO_free);
    return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free};
  }
  bool Receive() {
    std::array<char, 65'536> piece{};
    const int got = SSL_read(ssl_.get(), piece.data(), static_cast<int>(piece.size()));
    if (got <= 0) {
      last_error_ = SSL_get_error(ssl_.get(), got);
      ERR_clear_error();
      return false;
    }
    received_.append(piece.data(), static_cast<std::size_t>(got));
    return true;
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{nullptr, SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
  int socket_ = -1;
  bool connected_ = false;
  int last_error_ = 0;
  std::string received_;
};

class TlsServer : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("tls-") + testing::UnitTest::GetInstance()->current_test_info()->name() +
         std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
    options.certificate_file = directory_ / "tls.crt";
    options.key_file = directory_ / "tls.key";
    options.look_every = milliseconds(1);
    Write(fakes::MakeCertificate(ca, "DNS:localhost"));
  }
  void TearDown() override {
    server.reset();
    std::filesystem::remove_all(directory_);
  }

  static void WriteFile(const std::string& path, const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }
  void Write(const KeyPair& pair) const {
    WriteFile(options.key_file, pair.key_pem);
    WriteFile(options.certificate_file, pair.certificate_pem);
  }
  absl::Status Start(Limits limits = {}, int threads = 2, std::function<void()> busy = nullptr) {
    Options all;
    all.port = 0;
    all.threads = threads;
    all.limits = limits;
    all.tls = options;
    all.warn = [this](const std::string&) { ++warnings; };
    server = std::make_unique<Server>(all, [this, busy](Request request, Responder respond) {
      if (request.path == "/busy") {
        being_busy = true;
        busy();
        being_busy = false;
      }
      if (request.path == "/large") return respond(Text(std::string(8 << 20, 'x')));
      if (request.path == "/names") {
        std::string names = request.client_names ? "shown" : "none";
        if (request.client_names) {
          for (const std::string& name : *request.client_names) names += " " + name;
        }
        return respond(Text(std::move(names)));
      }
      respond(Text(std::move(request.body)));
    });
    return server->Start();
  }
  TlsClient::How Trusting() const { return {ca.certificate_pem, TLS1_3_VERSION, nullptr}; }

  const KeyPair ca = fakes::MakeCa("the server's");
  TlsOptions options;
  std::unique_ptr<Server> server;
  std::atomic<int> warnings = 0;
  std::atomic<bool> being_busy = false;
  std::filesystem::path directory_;
};

TEST_F(TlsServer, AnswersRequestsOfEverySizeOnOneConnection) {
  ASSERT_TRUE(Start().ok());
  TlsClient client(server->port(), Trusting());
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.Ask(Post("/echo", "{\"a\":1}")), 200);
  EXPECT_EQ(client.body, "{\"a\":1}");
  const std::string large(3'000'000, 'y');
  EXPECT_EQ(client.Ask(Post("/echo", large)), 200);
  EXPECT_EQ(client.body, large);
  EXPECT_EQ(client.Ask(Get("/large")), 200);
  EXPECT_EQ(client.body.size(), 8U << 20);
  EXPECT_EQ(client.Ask(Get("/last", "Connection: close\r\n")), 200);
  EXPECT_TRUE(client.EndedProperly());
  EXPECT_EQ(server->statistics().connections_total, 1);
}

TEST_F(TlsServer, TakesTls12AndNewer) {
  ASSERT_TRUE(Start().ok());
  const struct {
    int highest;
    bool taken;
  } cases[] = {{TLS1_3_VERSION, true}, {TLS1_2_VERSION, true}, {TLS1_1_VERSION, false}};
  for (const auto& [highest, taken] : cases) {
    TlsClient::How how = Trusting();
    how.highest = highest;
    EXPECT_EQ(TlsClient(server->port(), how).connected(), taken) << highest;
  }
  // Plain text is no handshake.
  RawClient plain(server->port());
  plain.Send(Get("/healthz"));
  EXPECT_EQ(plain.Read().status, 0);
  for (int i = 0; i < 500 && server->statistics().handshakes_failed < 2; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ(server->statistics().handshakes_failed, 2);
}

TEST_F(TlsServer, WhoShowsAGoodCertificateGivesWayLast) {
  options.client_ca_file = directory_ / "clients.crt";
  options.client_optional = true;
  const KeyPair clients = fakes::MakeCa("clients'");
  const KeyPair own = fakes::MakeCertificate(clients, "DNS:kube-scheduler");
  WriteFile(options.client_ca_file, clients.certificate_pem);
  Limits limits;
  limits.connections = 4;
  ASSERT_TRUE(Start(limits).ok());
  TlsClient::How known = Trusting();
  known.own = &own;
  TlsClient scheduler(server->port(), known);
  EXPECT_EQ(scheduler.Ask(Get("/names")), 200);
  std::vector<std::unique_ptr<TlsClient>> crowd;
  for (int i = 0; i < 12; ++i) {
    crowd.push_back(std::make_unique<TlsClient>(server->port(), Trusting()));
    crowd.back()->Send("G");
  }
  EXPECT_EQ(scheduler.Ask(Get("/names")), 200) << "idle for the longest time, and kept";
  // All places are taken by requests that never end: there is one for this caller.
  TlsClient webhook(server->port(), known);
  EXPECT_EQ(webhook.Ask(Get("/names")), 200);
  EXPECT_EQ(webhook.Ask(Get("/names")), 200) << "not as a spare one";
  // Among their own kind the cap holds: the longest idle one gives way.
  std::vector<std::unique_ptr<TlsClient>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<TlsClient>(server->port(), known));
    EXPECT_EQ(all.back()->Ask(Get("/names")), 200) << i;
  }
  EXPECT_EQ(all.back()->Ask(Get("/names")), 200);
}

TEST_F(TlsServer, HandshakesHaveACapOfTheirOwn) {
  Limits limits;
  limits.connections = 20;
  ASSERT_TRUE(Start(limits).ok());
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(std::make_unique<RawClient>(server->port()));
  EXPECT_TRUE(Eventually([&] { return server->statistics().connections_evicted >= 25; }));
  EXPECT_LE(server->statistics().connections_open, 6);
  TlsClient client(server->port(), Trusting());
  EXPECT_EQ(client.Ask(Get("/size")), 200);
}

TEST_F(TlsServer, LimitsHoldBehindTheHandshake) {
  Limits limits;
  limits.body_bytes = 1'000;
  limits.header_bytes = 2'000;
  limits.header_time = milliseconds(300);
  ASSERT_TRUE(Start(limits).ok());
  const struct {
    std::string bytes;
    int status;
  } cases[] = {
      {Post("/", std::string(1'001, 'x')), 413},
      {Get("/", "X: " + std::string(3'000, 'x') + "\r\n"), 431},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: never ends", 408},
  };
  for (const auto& [bytes, status] : cases) {
    TlsClient client(server->port(), Trusting());
    EXPECT_EQ(client.Ask(bytes), status) << bytes.substr(0, 60);
    EXPECT_TRUE(client.EndedProperly());
  }
}

// The bytes of a body come while the server's one thread is busy until their time is over: the read
// of what came first begins another, whose bytes are there as well when the deadline is looked at.
// What they are written into is seen by a checker of memory that knows OpenSSL's own writes
// (valgrind).
TEST_F(TlsServer, ABodyThatIsLateIsRefusedWhenTheReadUnderWayHasEnded) {
  Limits limits;
  limits.request_time = milliseconds(200);
  std::mutex busy;
  ASSERT_TRUE(Start(limits, 1, [&busy] { const std::lock_guard wait(busy); }).ok());
  const std::string head = "POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n";
  for (int round = 0; round < 5; ++round) {
    TlsClient late(server->port(), Trusting());
    TlsClient other(server->port(), Trusting());
    late.Send(head + std::string(10'000, 'x'));
    std::unique_lock hold(busy);
    other.Send(Get("/busy"));
    EXPECT_TRUE(Eventually([this] { return being_busy.load(); }));
    const auto over = steady_clock::now() + 2 * limits.request_time;
    late.Send(std::string(60'000, 'x'));
    while (steady_clock::now() < over) std::this_thread::yield();
    hold.unlock();
    EXPECT_EQ(other.Read(), 200);
    EXPECT_EQ(late.Read(), 408);
    EXPECT_TRUE(Eventually([this] { return !being_busy.load(); }));
  }
}

TEST_F(TlsServer, AHandshakeThatDoesNotEndHasTheTimeOfAHeader) {
  Limits limits;
  limits.header_time = milliseconds(200);
  limits.connections = 2;
  ASSERT_TRUE(Start(limits).ok());
  RawClient silent(server->port());
  RawClient half(server->port());
  half.Send(std::string_view("\x16\x03\x01\x02\x00\x01", 6));
  const auto began = steady_clock::now();
  EXPECT_TRUE(silent.Ended());
  EXPECT_TRUE(half.Ended());
  EXPECT_LT(steady_clock::now() - began, milliseconds(3'000));
  // Both places are free again.
  EXPECT_TRUE(TlsClient(server->port(), Trusting()).connected());
}

TEST_F(TlsServer, TakesUpACertificateThatChangedAndKeepsTheOldOneUntilItIsWhole) {
  ASSERT_TRUE(Start().ok());
  TlsClient before(server->port(), Trusting());
  ASSERT_TRUE(before.connected());
  const std::string first = before.ServerSerial();

  // The certificate is there, its key not yet.
  const KeyPair next = fakes::MakeCertificate(ca, "DNS:localhost,DNS:tranche");
  WriteFile(options.certificate_file, next.certificate_pem);
  for (int i = 0; i < 500 && warnings == 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(warnings, 1) << "told once for each version of the files";
  EXPECT_EQ(TlsClient(server->port(), Trusting()).ServerSerial(), first);

  WriteFile(options.key_file, next.key_pem);
  std::string shown = first;
  for (int i = 0; i < 500 && shown == first; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    TlsClient after(server->port(), Trusting());
    ASSERT_TRUE(after.connected());
    shown = after.ServerSerial();
  }
  EXPECT_NE(shown, first);
  // What was open goes on.
  EXPECT_EQ(before.Ask(Post("/echo", "still")), 200);
}

TEST_F(TlsServer, AsksClientsForACertificateWhereACaIsGiven) {
  const KeyPair client_ca = fakes::MakeCa("the clients'");
  options.client_ca_file = directory_ / "clients.crt";
  WriteFile(options.client_ca_file, client_ca.certificate_pem);
  ASSERT_TRUE(Start().ok());
  const KeyPair good = fakes::MakeCertificate(client_ca, "DNS:api-server");
  const KeyPair bad = fakes::MakeCertificate(ca, "DNS:somebody");
  const struct {
    const KeyPair* own;
    int status;
  } cases[] = {{&good, 200}, {&bad, 0}, {nullptr, 0}};
  for (const auto& [own, status] : cases) {
    TlsClient client(server->port(), {ca.certificate_pem, TLS1_3_VERSION, own});
    EXPECT_EQ(client.Ask(Post("/echo", "x")), status);
  }
}

// Every cipher the library has for TLS 1.2 and older is offered alone.
TEST_F(TlsServer, TakesOnlyCiphersWithForwardSecrecyAndAuthenticatedEncryption) {
  ASSERT_TRUE(Start().ok());
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> all(SSL_CTX_new(TLS_client_method()),
                                                              SSL_CTX_free);
  SSL_CTX_set_security_level(all.get(), 0);
  ASSERT_EQ(SSL_CTX_set_cipher_list(all.get(), "ALL:COMPLEMENTOFALL"), 1);
  STACK_OF(SSL_CIPHER)* const ciphers = SSL_CTX_get_ciphers(all.get());
  int offered = 0;
  int taken = 0;
  for (int i = 0; i < sk_SSL_CIPHER_num(ciphers); ++i) {
    const SSL_CIPHER* const cipher = sk_SSL_CIPHER_value(ciphers, i);
    const std::string name = SSL_CIPHER_get_name(cipher);
    if (std::string_view(SSL_CIPHER_get_version(cipher)) == "TLSv1.3") continue;
    ++offered;
    TlsClient::How how = Trusting();
    how.highest = TLS1_2_VERSION;
    how.ciphers = name;
    TlsClient client(server->port(), how);
    if (!client.connected()) continue;
    ++taken;
    EXPECT_EQ(client.cipher(), name);
    EXPECT_EQ(SSL_CIPHER_get_kx_nid(cipher), NID_kx_ecdhe) << name;
    EXPECT_EQ(SSL_CIPHER_is_aead(cipher), 1) << name;
  }
  EXPECT_GT(offered, 20);
  EXPECT_GT(taken, 0) << "the server's certificate has an elliptic key";
}

TEST_F(TlsServer, RefusesOldVersions) {
  ASSERT_TRUE(Start().ok());
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    TlsClient::How how = Trusting();
    how.lowest = how.highest = version;
    how.ciphers = "ALL:COMPLEMENTOFALL:@SECLEVEL=0";
    EXPECT_FALSE(TlsClient(server->port(), how).connected()) << version;
  }
}

TEST_F(TlsServer, TellsWhoseCertificateWasShown) {
  const KeyPair client_ca = fakes::MakeCa("the clients'");
  const KeyPair other_ca = fakes::MakeCa("another");
  options.client_ca_file = directory_ / "clients.crt";
  WriteFile(options.client_ca_file, client_ca.certificate_pem);
  options.client_optional = true;
  ASSERT_TRUE(Start().ok());
  fakes::Validity past{-7200, -3600};
  const struct {
    const char* what;
    std::optional<KeyPair> own;
    int status;
    const char* names;
  } cases[] = {
      {"none", std::nullopt, 200, "none"},
      {"another CA", fakes::MakeCertificate(other_ca, "DNS:kube-scheduler"), 0, ""},
      {"run out", fakes::MakeCertificate(client_ca, "DNS:kube-scheduler", past), 0, ""},
      {"a DNS name", fakes::MakeCertificate(client_ca, "DNS:kube-scheduler"), 200,
       "shown kube-scheduler"},
      {"several, of which addresses are no names",
       fakes::MakeCertificate(client_ca, "DNS:a,IP:127.0.0.1,URI:spiffe://b/c"), 200,
       "shown a spiffe://b/c"},
      {"only addresses: the common name does not count",
       fakes::MakeCertificate(client_ca, "IP:127.0.0.1"), 200, "shown"},
      {"no alternative names: the common name", fakes::MakeCertificate(client_ca, ""), 200,
       "shown localhost"},
  };
  for (const auto& [what, own, status, names] : cases) {
    SCOPED_TRACE(what);
    TlsClient client(server->port(), {ca.certificate_pem, TLS1_3_VERSION, own ? &*own : nullptr});
    EXPECT_EQ(client.Ask(Get("/names")), status);
    if (status == 200) {
      EXPECT_EQ(client.body, names);
    }
  }
}

TEST_F(TlsServer, DoesNotStartWithFilesItCannotUse) {
  const std::string good = options.key_file;
  const struct {
    std::string certificate, key, names;
  } cases[] = {
      {directory_ / "absent", good, "tls.certFile"},
      {options.certificate_file, directory_ / "absent", "tls.keyFile"},
      {good, good, "tls.certFile"},
  };
  for (const auto& [certificate, key, names] : cases) {
    options.certificate_file = certificate;
    options.key_file = key;
    const absl::Status started = Start();
    EXPECT_TRUE(absl::IsInvalidArgument(started)) << started;
    EXPECT_NE(started.message().find(names), std::string::npos) << started;
    options.certificate_file = directory_ / "tls.crt";
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::http
