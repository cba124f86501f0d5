# SPDX-License-Identifier: Apache-2.0
# Runs the swarm program TARGET on SEEDS random seeds, of them those of SHARD; on twenty times as many
# with SRD_TEST_FULL in the environment.
if(DEFINED ENV{SRD_TEST_FULL})
  math(EXPR SEEDS "${SEEDS} * 20")
endif()
execute_process(COMMAND ${TARGET} --swarm --seeds ${SEEDS} --shard ${SHARD} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${TARGET} failed: ${result}")
endif()
