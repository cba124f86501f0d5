# SPDX-License-Identifier: Apache-2.0
# Runs the swarm program TARGET within LIMIT_S seconds, in one of two ways:
#   -DFILE=regressions.txt      the seeds listed there, one a line with what they once found; always the same
#   -DSEEDS=N -DSHARD=I/N       N fresh networks, of them those of SHARD. Their base seed is drawn and printed;
#                               each failure prints the command that replays it, SRD_SEED=BASE ctest replays
#                               all. With SRD_TEST_FULL twenty times as many, and no limit of time.
set(commands)
if(FILE)
  file(STRINGS ${FILE} lines REGEX "^[0-9]")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[0-9a-fx]+" seed "${line}")
    list(APPEND commands "--seed ${seed}")
  endforeach()
else()
  if(DEFINED ENV{SRD_TEST_FULL})
    math(EXPR SEEDS "${SEEDS} * 20")
    set(LIMIT_S 7000)
  endif()
  set(commands "--seeds ${SEEDS} --shard ${SHARD}")
endif()
foreach(command IN LISTS commands)
  separate_arguments(arguments UNIX_COMMAND "${command}")
  execute_process(COMMAND ${TARGET} --swarm ${arguments} TIMEOUT ${LIMIT_S} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${TARGET} --swarm ${command}: ${result} (the limit is ${LIMIT_S} s)")
  endif()
endforeach()
