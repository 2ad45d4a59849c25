/* readers.h: the harnesses, for the list of them. */
#ifndef TESTS_FUZZ_READERS_H
#define TESTS_FUZZ_READERS_H

#include "tests/fuzz/fuzz.h"

extern const RnFuzzReader rn_fuzz_reader_cache;
extern const RnFuzzReader rn_fuzz_reader_config;
extern const RnFuzzReader rn_fuzz_reader_exif;
extern const RnFuzzReader rn_fuzz_reader_jpeg;
extern const RnFuzzReader rn_fuzz_reader_list;
extern const RnFuzzReader rn_fuzz_reader_log;
extern const RnFuzzReader rn_fuzz_reader_override;
extern const RnFuzzReader rn_fuzz_reader_pickle;
extern const RnFuzzReader rn_fuzz_reader_png;
extern const RnFuzzReader rn_fuzz_reader_record;
extern const RnFuzzReader rn_fuzz_reader_safetensors;
extern const RnFuzzReader rn_fuzz_reader_weights;
extern const RnFuzzReader rn_fuzz_reader_xml;

#endif
