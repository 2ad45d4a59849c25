#!/bin/sh
# Stands for the tests of the CUDA device where there is no toolkit, so that their absence shows.
echo "1..0 # SKIP the tests of the CUDA device were not built: CUDA: ${RN_TEST_CUDA:-no}"
