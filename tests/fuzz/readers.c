/* readers.c: the list of harnesses. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include <string.h>

/* clang-format off */
const RnFuzzReader *const rn_fuzz_readers[] = {
  &rn_fuzz_reader_xml,
  &rn_fuzz_reader_jpeg,
  &rn_fuzz_reader_png,
  &rn_fuzz_reader_exif,
  &rn_fuzz_reader_config,
  &rn_fuzz_reader_override,
  &rn_fuzz_reader_list,
  &rn_fuzz_reader_cache,
  &rn_fuzz_reader_safetensors,
  &rn_fuzz_reader_record,
  &rn_fuzz_reader_weights,
  &rn_fuzz_reader_pickle,
  &rn_fuzz_reader_log,
  NULL,
};
/* clang-format on */

const RnFuzzReader *
rn_fuzz_find (const char *name)
{
  for (guint i = 0; rn_fuzz_readers[i] != NULL; i++)
    if (strcmp (rn_fuzz_readers[i]->name, name) == 0)
      return rn_fuzz_readers[i];
  return NULL;
}
