// SPDX-License-Identifier: Apache-2.0
// Counts this process's allocations by operator new, to prove that a data path makes none.
#pragma once

#include <cstdint>

namespace srd::test {

std::uint64_t allocation_count() noexcept;

}  // namespace srd::test
