// SPDX-License-Identifier: Apache-2.0
// Boost.Asio (1.74 or later) over srd.hpp: asynchronous send and receive with any completion token.
// A Service drives one Poller from an executor; an AsyncEndpoint owns one Endpoint of it.
// Header-only.
//
// Rules as in Asio: handlers run through their associated executor and never inside the initiating
// call; memory comes from the associated allocator and is freed before the handler runs; buffers
// belong to the operation until its handler runs. All calls may come from any thread. A received
// Message is used and released where its poller may be used: in handlers that run on the Service's
// executor if that is one thread or a strand, anywhere if the poller is shared
// (PollerConfig::shared).
//
// Life times: io_context > Poller > Service > AsyncEndpoint > Message. A Service keeps run() from
// returning until close(): acknowledgements and retransmissions go on without pending operations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>  // Boost 1.74's awaitable.hpp lacks it
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include "srd/srd.hpp"

namespace srd::asio {

/// Boost category "srd" for codes beyond errno; they compare equal to the boost::system::errc
/// conditions they correspond to. Any thread.
inline const boost::system::error_category& error_category() noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"  // Boost's base class

  class Category final  // NOLINT(cppcoreguidelines-virtual-class-destructor)
      : public boost::system::error_category {
   public:
    const char* name() const noexcept override { return "srd"; }

    std::string message(int code) const override { return srd_error_string(-code); }

    boost::system::error_condition default_error_condition(int code) const noexcept override {
      const std::error_condition condition =
          make_error_code(static_cast<Errc>(code)).default_error_condition();
      return {condition.value(), boost::system::generic_category()};
    }
  };

#pragma GCC diagnostic pop
  static const Category category;
  return category;
}

/// The Boost error of a status: errno values in the system category, so that they equal
/// boost::asio::error::*; others in the "srd" category. Any thread.
inline boost::system::error_code to_boost(int status) noexcept {
  constexpr int kFirstOwnCode = 10000;
  if (status >= 0) return {};
  if (-status < kFirstOwnCode) return {-status, boost::system::system_category()};
  return {-status, error_category()};
}

inline boost::system::error_code to_boost(const std::error_code& error) noexcept {
  return to_boost(-error.value());
}

namespace detail {

using boost::system::error_code;

// Member of one list at a time; leaves it on its own.
struct Node {
  Node() noexcept = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  ~Node() { unlink(); }

  void unlink() noexcept {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }

  void insert_before(Node& other) noexcept {
    previous = other.previous;
    next = &other;
    previous->next = next->previous = this;
  }

  Node* previous = this;
  Node* next = this;
};

template <class T>
class List {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return head_.next == &head_; }

  T& front() noexcept { return static_cast<T&>(*head_.next); }

  void push_back(T& item) noexcept {
    item.unlink();
    item.insert_before(head_);
  }

 private:
  Node head_;
};

// One pending operation. finish() hands it to its handler's executor, where it ends.
class Operation : public Node {
 public:
  virtual void finish() noexcept = 0;
  virtual void abort(const error_code& error) noexcept = 0;  // sets the results only

  virtual void withdraw() noexcept {}  // the endpoint goes away before the handler ran

 protected:
  ~Operation() = default;
};

struct Send : Operation {
  using Results = std::tuple<error_code, std::size_t>;

  void abort(const error_code& error) noexcept override { results = {error, 0}; }

  Results results{};
  Peer peer = kInvalidPeer;
  SendOptions options{};
  std::array<Iov, 8> pieces{};
  std::size_t piece_count = 0;

 protected:
  ~Send() = default;
};

struct Receive : Operation {
  /// Takes `message` or leaves it to the next receive.
  virtual void take(Message& message) noexcept = 0;

 protected:
  ~Receive() = default;
};

struct ReceiveMessage : Receive {
  using Results = std::tuple<error_code, Message>;

  void take(Message& message) noexcept override { std::get<1>(results) = std::move(message); }

  void abort(const error_code& error) noexcept override { std::get<0>(results) = error; }

  void withdraw() noexcept override {
    results = Results(boost::asio::error::operation_aborted, Message());
  }

  Results results{};

 protected:
  ~ReceiveMessage() = default;
};

struct ReceiveCopy : Receive {
  using Results = std::tuple<error_code, std::size_t, Peer>;

  void take(Message& message) noexcept override {
    results = {error_code(), message.bytes(), message.peer()};
    if (message.bytes() > buffer.size()) {
      std::get<0>(results) = boost::asio::error::message_size;
      return;
    }
    message.copy_to({static_cast<std::byte*>(buffer.data()), buffer.size()});
    message.release();
  }

  void abort(const error_code& error) noexcept override { results = {error, 0, kInvalidPeer}; }

  Results results{};
  boost::asio::mutable_buffer buffer;

 protected:
  ~ReceiveCopy() = default;
};

class EndpointState;

// What Service and its endpoints share. `mutex` covers the poller and all lists; handlers never run
// under it, as they are posted.
class ServiceState : public std::enable_shared_from_this<ServiceState> {
 public:
  ServiceState(boost::asio::any_io_executor executor, Poller& poller)
      : executor_(std::move(executor)), poller_(&poller) {
    if (poller.fd() >= 0) descriptor_.emplace(executor_, poller.fd());
  }

  ServiceState(const ServiceState&) = delete;
  ServiceState& operator=(const ServiceState&) = delete;

  ~ServiceState() { stop(); }

  // All below: with `mutex` held, except pump().
  void add(EndpointState& endpoint) { endpoints_.push_back(&endpoint); }

  void remove(EndpointState& endpoint) noexcept { std::erase(endpoints_, &endpoint); }

  void request_pump() {
    if (poller_ == nullptr || pump_requested_) return;
    pump_requested_ = true;
    boost::asio::post(executor_, [self = shared_from_this()] { self->pump(); });
  }

  void stop() noexcept {
    poller_ = nullptr;
    if (descriptor_) descriptor_->release();  // cancels; the descriptor is the poller's
    descriptor_.reset();
  }

  inline void close_endpoints() noexcept;
  inline void pump() noexcept;

  [[nodiscard]] bool is_open() const noexcept { return poller_ != nullptr; }

  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  std::mutex& mutex() noexcept { return mutex_; }

 private:
  inline void dispatch(const Completion& completion) noexcept;
  inline bool resubmit() noexcept;

  void sleep_or_pump() {
    if (std::error_code failed; !descriptor_ || !poller_->arm(failed)) {
      request_pump();
      return;
    }
    if (sleeping_) return;
    sleeping_ = true;
    descriptor_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [self = shared_from_this()](const error_code&) {
                              {
                                const std::lock_guard lock(self->mutex_);
                                self->sleeping_ = false;
                              }
                              self->pump();
                            });
  }

  std::mutex mutex_;
  boost::asio::any_io_executor executor_;
  Poller* poller_;  // nullptr: closed
  std::optional<boost::asio::posix::stream_descriptor> descriptor_;
  std::vector<EndpointState*> endpoints_;
  std::array<Completion, 64> completions_{};
  bool pump_requested_ = false;
  bool sleeping_ = false;
};

class EndpointState {
 public:
  using PeerHandler = std::function<void(Peer, error_code)>;

  EndpointState(std::shared_ptr<ServiceState> service, Endpoint endpoint)
      : service_(std::move(service)), endpoint_(std::move(endpoint)) {}

  // All below: with service().mutex() held.
  void start(Send& operation) noexcept {
    if (!endpoint_) return fail(operation, boost::asio::error::bad_descriptor);
    if (!queued_.is_empty() || !submit(operation)) queued_.push_back(operation);
    service_->request_pump();
  }

  void reject(Operation& operation, const error_code& error) noexcept { fail(operation, error); }

  void start(Receive& operation) noexcept {
    if (!endpoint_) return fail(operation, boost::asio::error::bad_descriptor);
    receives_.push_back(operation);
    match();
  }

  void handle(const Completion& completion) noexcept {
    switch (completion.op) {
      case SRD_OP_RECEIVE:
        inbox_.emplace_back(completion);
        match();
        break;
      case SRD_OP_SEND: {
        // user_data carried the pointer.  NOLINTNEXTLINE(performance-no-int-to-ptr)
        auto& operation = *reinterpret_cast<Send*>(completion.user_data);
        operation.results = {to_boost(completion.status),
                             completion.status < 0 ? 0 : completion.bytes};
        finish(operation);
        break;
      }
      case SRD_OP_PEER:
        if (!peer_handler_) break;
        boost::asio::post(service_->executor(),
                          [handler = peer_handler_, peer = completion.peer,
                           error = to_boost(completion.status)] { handler(peer, error); });
        break;
      default:
        break;
    }
  }

  // Offers again what found the queue full. True if something was taken.
  bool resubmit() noexcept {
    bool any = false;
    while (!queued_.is_empty() && submit(queued_.front())) any = true;
    return any;
  }

  void cancel() noexcept {
    abort_all(receives_);
    abort_all(queued_);
  }

  void close() noexcept {
    if (!endpoint_) return;
    service_->remove(*this);
    cancel();
    while (!finishing_.is_empty()) {  // handlers that have not run yet
      finishing_.front().withdraw();
      finishing_.front().unlink();
    }
    inbox_.clear();
    endpoint_ = {};  // from here on nothing refers to the payload of sends
    abort_all(sent_);
  }

  void set_peer_handler(PeerHandler handler) { peer_handler_ = std::move(handler); }

  Endpoint& endpoint() noexcept { return endpoint_; }

  ServiceState& service() noexcept { return *service_; }

 private:
  // False if the queue is full.
  bool submit(Send& operation) noexcept {
    operation.options.user_data = reinterpret_cast<std::uintptr_t>(static_cast<Send*>(&operation));
    const std::error_code error = endpoint_.send(
        operation.peer, std::span<const Iov>(operation.pieces).first(operation.piece_count),
        operation.options);
    if (error == Errc::would_block) return false;
    if (error) {
      fail(operation, to_boost(error));
    } else {
      sent_.push_back(operation);
    }
    return true;
  }

  void match() noexcept {
    while (!inbox_.empty() && !receives_.is_empty()) {
      Receive& operation = receives_.front();
      operation.take(inbox_.front());
      if (!inbox_.front()) inbox_.pop_front();
      finish(operation);
    }
  }

  void finish(Operation& operation) noexcept {
    finishing_.push_back(operation);
    operation.finish();
  }

  void fail(Operation& operation, const error_code& error) noexcept {
    operation.abort(error);
    finish(operation);
  }

  template <class T>
  void abort_all(List<T>& list) noexcept {
    while (!list.is_empty()) fail(list.front(), boost::asio::error::operation_aborted);
  }

  std::shared_ptr<ServiceState> service_;
  Endpoint endpoint_;
  std::deque<Message> inbox_;
  List<Receive> receives_;
  List<Send> queued_;          // found the queue full
  List<Send> sent_;            // the library has them
  List<Operation> finishing_;  // results are known, the handler has not run
  PeerHandler peer_handler_;
};

inline void ServiceState::close_endpoints() noexcept {
  while (!endpoints_.empty()) endpoints_.back()->close();
}

inline void ServiceState::pump() noexcept {
  constexpr int kRoundsMax = 16;  // then other work of the executor gets its turn
  const std::lock_guard lock(mutex_);
  pump_requested_ = false;
  for (int round = 0; round < kRoundsMax && poller_ != nullptr; ++round) {
    std::error_code error;
    const auto found = poller_->poll(completions_, error);
    if (error) {  // a forked child, or misuse: nothing can go on
      close_endpoints();
      stop();
      return;
    }
    for (const Completion& completion : found) dispatch(completion);
    const bool resubmitted = resubmit();
    if (found.size() < completions_.size() && !resubmitted) break;
  }
  if (poller_ != nullptr) sleep_or_pump();
}

inline void ServiceState::dispatch(const Completion& completion) noexcept {
  for (EndpointState* endpoint : endpoints_) {
    if (endpoint->endpoint().owns(completion)) return endpoint->handle(completion);
  }
}

inline bool ServiceState::resubmit() noexcept {
  bool any = false;
  for (EndpointState* endpoint : endpoints_) any |= endpoint->resubmit();
  return any;
}

// `Base` with the handler that gets its results. Destroyed by end() alone.
template <class Base, class Handler>
class OperationOf final : public Base {  // NOLINT(cppcoreguidelines-virtual-class-destructor)
 public:
  using Executor = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
  using Allocator = typename std::allocator_traits<
      boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<OperationOf>;

  static OperationOf* make(Handler handler, std::shared_ptr<EndpointState> endpoint) {
    Allocator allocator(boost::asio::get_associated_allocator(handler));
    OperationOf* memory = std::allocator_traits<Allocator>::allocate(allocator, 1);
    return new (memory) OperationOf(std::move(handler), std::move(endpoint));
  }

  void finish() noexcept override { boost::asio::post(work_.get_executor(), Ready(this)); }

 private:
  // What is posted: runs the handler, or frees the operation if the executor never runs it.
  class Ready {
   public:
    using allocator_type = boost::asio::associated_allocator_t<Handler>;

    explicit Ready(OperationOf* operation) noexcept : operation_(operation) {}

    Ready(Ready&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}

    Ready(const Ready&) = delete;
    Ready& operator=(const Ready&) = delete;
    Ready& operator=(Ready&&) = delete;

    ~Ready() {
      if (operation_ == nullptr) return;
      Allocator allocator(get_allocator());
      // What the handler owns may be an AsyncEndpoint, so it ends outside end() and its lock.
      [[maybe_unused]] const Handler handler = std::move(operation_->handler_);
      operation_->end(std::move(allocator));
    }

    [[nodiscard]] allocator_type get_allocator() const noexcept {
      return boost::asio::get_associated_allocator(operation_->handler_);
    }

    void operator()() { std::exchange(operation_, nullptr)->run(); }

   private:
    OperationOf* operation_;
  };

  OperationOf(Handler handler, std::shared_ptr<EndpointState> endpoint)
      : endpoint_(std::move(endpoint)),
        work_(boost::asio::get_associated_executor(handler, endpoint_->service().executor())),
        handler_(std::move(handler)) {}

  void run() {
    Allocator allocator(boost::asio::get_associated_allocator(handler_));
    Handler handler = std::move(handler_);
    const auto work = std::move(work_);
    typename Base::Results taken = end(std::move(allocator));
    std::apply([&](auto&... result) { std::move(handler)(std::move(result)...); }, taken);
  }

  // Frees the operation and returns its results.
  typename Base::Results end(Allocator allocator) noexcept {
    const std::shared_ptr<EndpointState> endpoint = std::move(endpoint_);
    const std::lock_guard lock(endpoint->service().mutex());
    typename Base::Results taken = std::move(this->results);
    this->~OperationOf();
    std::allocator_traits<Allocator>::deallocate(allocator, this, 1);
    return taken;
  }

  ~OperationOf() = default;

  std::shared_ptr<EndpointState> endpoint_;
  boost::asio::executor_work_guard<Executor> work_;
  Handler handler_;
};

}  // namespace detail

/// Drives `poller` on `executor`. The poller must outlive it and be driven by nothing else.
class Service {
 public:
  Service(boost::asio::any_io_executor executor, Poller& poller)
      : state_(std::make_shared<detail::ServiceState>(std::move(executor), poller)) {
    const std::lock_guard lock(state_->mutex());
    state_->request_pump();
  }

  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  ~Service() { close(); }

  /// Closes all its endpoints and stops. Nothing more can be done with them. Any thread.
  void close() noexcept {
    const std::lock_guard lock(state_->mutex());
    state_->close_endpoints();
    state_->stop();
  }

  /// As given to the constructor. Any thread.
  [[nodiscard]] boost::asio::any_io_executor get_executor() const noexcept {
    return state_->executor();
  }

 private:
  friend class AsyncEndpoint;
  std::shared_ptr<detail::ServiceState> state_;
};

/// An endpoint with asynchronous operations. Any thread may call its functions, one at a time for
/// moving and destroying it.
class AsyncEndpoint {
 public:
  using executor_type = boost::asio::any_io_executor;

  /// `endpoint` must be of the Service's poller.
  AsyncEndpoint(Service& service, Endpoint endpoint)
      : state_(std::make_shared<detail::EndpointState>(service.state_, std::move(endpoint))) {
    const std::lock_guard lock(state_->service().mutex());
    state_->service().add(*state_);
  }

  AsyncEndpoint(const AsyncEndpoint&) = delete;
  AsyncEndpoint& operator=(const AsyncEndpoint&) = delete;
  AsyncEndpoint(AsyncEndpoint&&) noexcept = default;

  AsyncEndpoint& operator=(AsyncEndpoint&& other) noexcept {
    if (this != &other) {
      close();
      state_ = std::move(other.state_);
    }
    return *this;
  }

  ~AsyncEndpoint() { close(); }

  /// Sends one message of all of `buffers`, at most 8 of them. Signature: void(error_code,
  /// std::size_t bytes). Completes when the peer's endpoint has accepted it; a full queue is waited
  /// for, options.unsignaled is ignored. Errors: invalid_argument (more buffers); message_size,
  /// host_unreachable and others of srd::Errc; operation_aborted.
  template <class ConstBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, std::size_t)) Token>
  auto async_send(Peer peer, const ConstBufferSequence& buffers, const SendOptions& options,
                  Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [state = state_, peer, options](auto handler, const ConstBufferSequence& payload) {
          auto* operation =
              detail::OperationOf<detail::Send, decltype(handler)>::make(std::move(handler), state);
          operation->peer = peer;
          operation->options = options;
          operation->options.unsignaled = false;  // its completion ends the operation
          bool fits = true;
          for (auto it = boost::asio::buffer_sequence_begin(payload);
               it != boost::asio::buffer_sequence_end(payload); ++it) {
            const boost::asio::const_buffer piece(*it);
            fits = operation->piece_count < operation->pieces.size();
            if (!fits) break;
            operation->pieces[operation->piece_count++] = {piece.data(), piece.size()};
          }
          const std::lock_guard lock(state->service().mutex());
          if (!fits) return state->reject(*operation, boost::asio::error::invalid_argument);
          state->start(*operation);
        },
        token, buffers);
  }

  /// The same with the default options.
  template <class ConstBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, std::size_t)) Token>
  auto async_send(Peer peer, const ConstBufferSequence& buffers, Token&& token) {
    return async_send(peer, buffers, SendOptions{}, std::forward<Token>(token));
  }

  /// Receives one message without copying it. Signature: void(error_code, srd::Message). Release
  /// the message before the endpoint is closed.
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, Message)) Token>
  auto async_receive(Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, Message)>(
        [state = state_](auto handler) {
          auto* operation = detail::OperationOf<detail::ReceiveMessage, decltype(handler)>::make(
              std::move(handler), state);
          const std::lock_guard lock(state->service().mutex());
          state->start(*operation);
        },
        token);
  }

  /// Receives one message into `buffer`. Signature: void(error_code, std::size_t bytes, srd::Peer).
  /// If it does not fit: message_size with the bytes needed, and the next receive gets the same
  /// message.
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, std::size_t, Peer))
                Token>
  auto async_receive_from(boost::asio::mutable_buffer buffer, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t, Peer)>(
        [state = state_, buffer](auto handler) {
          auto* operation = detail::OperationOf<detail::ReceiveCopy, decltype(handler)>::make(
              std::move(handler), state);
          operation->buffer = buffer;
          const std::lock_guard lock(state->service().mutex());
          state->start(*operation);
        },
        token);
  }

  /// A handle for the endpoint at that address; sends nothing. Errors: those of Endpoint::resolve.
  Result<Peer> resolve(const Address& address) noexcept {
    const std::lock_guard lock(state_->service().mutex());
    return state_->endpoint().resolve(address);
  }

  /// The same from "192.0.2.1:7000".
  Result<Peer> resolve(std::string_view text) noexcept {
    const std::lock_guard lock(state_->service().mutex());
    return state_->endpoint().resolve(text);
  }

  /// What is outstanding to `peer` ends with operation_aborted. Errors: not_found.
  std::error_code forget(Peer peer) noexcept {
    const std::lock_guard lock(state_->service().mutex());
    const std::error_code error = state_->endpoint().forget(peer);
    if (!error) state_->service().request_pump();
    return error;
  }

  /// Called on the Service's executor when a peer came up (no error) or was lost. Replaces the
  /// handler set before; an empty one ends it.
  void on_peer(std::function<void(Peer, boost::system::error_code)> handler) {
    const std::lock_guard lock(state_->service().mutex());
    state_->set_peer_handler(std::move(handler));
  }

  /// operation_aborted for pending receives and for sends that wait for room. Sends that the
  /// library has taken complete with their outcome: their payload is in use until then.
  void cancel() noexcept {
    const std::lock_guard lock(state_->service().mutex());
    state_->cancel();
  }

  /// operation_aborted for everything pending; peers are told. Further operations: bad_descriptor.
  void close() noexcept {
    if (!state_) return;
    const std::lock_guard lock(state_->service().mutex());
    state_->close();
  }

  /// The bound address with its real port.
  [[nodiscard]] Address address() const noexcept {
    const std::lock_guard lock(state_->service().mutex());
    return state_->endpoint().address();
  }

  /// The endpoint's counters.
  [[nodiscard]] Stats stats() const noexcept {
    const std::lock_guard lock(state_->service().mutex());
    return state_->endpoint().stats();
  }

  /// The Service's.
  [[nodiscard]] executor_type get_executor() const noexcept { return state_->service().executor(); }

 private:
  std::shared_ptr<detail::EndpointState> state_;
};

}  // namespace srd::asio
