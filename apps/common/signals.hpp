// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP for the tools: they are counted, and a sleeping poller is woken, so
// that a tool can report what it has before it ends.
#pragma once

#include "srd/srd.h"

namespace apps {

/// Installs the handlers; SIGPIPE is ignored. Call once, before the first wait.
void install_signal_handlers();

/// The poller that a signal wakes; nullptr before the poller is destroyed.
void wake_on_signal(srd_poller* poller) noexcept;

/// How many ending signals have arrived.
int signals_received() noexcept;

/// Name of the last one ("SIGINT"), or "" if none.
const char* last_signal_name() noexcept;

}  // namespace apps
