# SPDX-License-Identifier: Apache-2.0
# Runs the libFuzzer program TARGET on the corpus FOLDERS and then searches for new inputs: 20 s, or
# 15 minutes with SRD_TEST_FULL in the environment. A failing input is left in the current folder, and
# libFuzzer prints its name.
set(seconds 20)
if(DEFINED ENV{SRD_TEST_FULL})
  set(seconds 900)
endif()
execute_process(COMMAND ${TARGET} -max_total_time=${seconds} -max_len=2048 -timeout=10 -print_final_stats=1
                ${FOLDERS} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${TARGET} failed: ${result}")
endif()
