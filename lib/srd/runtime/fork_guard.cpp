// SPDX-License-Identifier: Apache-2.0
#include "srd/runtime/fork_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace srd::runtime {
namespace {

using Page = std::atomic<ProcessStamp>;
static_assert(Page::is_always_lock_free);

// The kernel zeroes this page in a forked child, whoever called fork and however (no handler that a
// raw clone() would skip). Everything else is lock-free, as a lock may be held at the fork.
std::atomic<Page*> the_page{nullptr};
std::atomic<ProcessStamp> last_stamp{0};  // ordinary memory: a child goes on counting

Page* page(Errc& error) noexcept {
  Page* found = the_page.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    error = Errc::no_memory;
    return nullptr;
  }
  if (madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    munmap(memory, bytes);
    error = Errc::not_supported;
    return nullptr;
  }
  auto* made = new (memory) Page(0);
  if (the_page.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
  munmap(memory, bytes);  // another thread was first
  return found;
}

}  // namespace

Errc current_stamp(ProcessStamp& out) noexcept {
  Errc error = Errc::ok;
  Page* stamp = page(error);
  if (stamp == nullptr) return error;
  ProcessStamp present = 0;  // first object of this process, or wiped by fork
  const ProcessStamp next = last_stamp.fetch_add(1, std::memory_order_relaxed) + 1;
  out = stamp->compare_exchange_strong(present, next) ? next : present;
  return Errc::ok;
}

bool is_own(ProcessStamp stamp) noexcept {
  const Page* page = the_page.load(std::memory_order_acquire);
  return page != nullptr && page->load(std::memory_order_relaxed) == stamp;
}

}  // namespace srd::runtime
