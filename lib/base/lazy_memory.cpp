// SPDX-License-Identifier: Apache-2.0
#include "base/lazy_memory.hpp"

#include <sys/mman.h>

namespace srd {

LazyMemory::~LazyMemory() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

bool LazyMemory::allocate(std::size_t bytes) noexcept {
  if (bytes == 0) return true;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  bytes_ = bytes;
  return true;
}

}  // namespace srd
