// SPDX-License-Identifier: Apache-2.0
#include "udp/rx_buffers.hpp"

namespace srd::udp {

RxBuffers::RxBuffers(std::uint32_t count) noexcept
    : count_(count),
      free_(count),
      memory_(std::size_t{count} * kStride),
      meta_(count),
      stack_(count) {
  if (!memory_.is_valid() || !meta_.is_valid() || !stack_.is_valid()) {
    memory_ = {};
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) stack_[i] = count - 1 - i;
}

bool RxBuffers::release(BufferId buffer) noexcept {
  const auto i = static_cast<std::uint32_t>(buffer);
  if (i >= count_ || meta_[i].references == 0) return false;
  if (--meta_[i].references == 0) give_back(i);
  return true;
}

}  // namespace srd::udp
