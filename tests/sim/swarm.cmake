# SPDX-License-Identifier: Apache-2.0
# Runs the swarm program TARGET on SEEDS networks, of them those of SHARD: always the same ones, so that a
# failure belongs to the change under test. SRD_SEED in the environment gives another base seed. With
# SRD_TEST_FULL twenty times as many, newly drawn.
set(seed --seed 3)
if(DEFINED ENV{SRD_TEST_FULL})
  math(EXPR SEEDS "${SEEDS} * 20")
  set(seed)
endif()
if(DEFINED ENV{SRD_SEED})
  set(seed)
endif()
execute_process(COMMAND ${TARGET} --swarm ${seed} --seeds ${SEEDS} --shard ${SHARD} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${TARGET} failed: ${result}")
endif()
