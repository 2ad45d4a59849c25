/* bad-files.h: files that somebody made with a purpose. */
#ifndef TESTS_FUZZ_BAD_FILES_H
#define TESTS_FUZZ_BAD_FILES_H

#include <glib.h>

/* What the pickles that call a function would leave behind in the current folder. */
#define BAD_TRACE "executed"

/* Each: (transfer full). */

/* XML: entities that grow to gigabytes; one that names a file; a hundred thousand elements in each other. */
GByteArray *bad_entity_bomb (void);
GByteArray *bad_external_entity (void);
GByteArray *bad_deep_xml (void);

/* YAML: aliases that grow to gigabytes; lists in lists; 9 MiB; a file that is its own base, named "bad". */
GByteArray *bad_alias_bomb (void);
GByteArray *bad_deep_yaml (void);
GByteArray *bad_large_yaml (void);
GByteArray *bad_own_base (void);
GByteArray *bad_nul (void); /* no text of any kind */

/* Headers of images with sides of so many pixels, and nothing behind them. */
GByteArray *bad_jpeg_65535 (void);
GByteArray *bad_png_2147483647 (void);

/* Split lists: out of the folder, in line 2; an absolute path; a name of a mebibyte; eight million names. */
GByteArray *bad_list_up (void);
GByteArray *bad_list_absolute (void);
GByteArray *bad_list_long (void);
GByteArray *bad_list_many (void);

/* Safetensors; the last with eight million numbers in its header. */
GByteArray *bad_header_2_63 (void);
GByteArray *bad_shape_overflow (void);
GByteArray *bad_offsets_outside (void);
GByteArray *bad_deep_header (void);
GByteArray *bad_many_values (void);

/* PyTorch's: 64 MiB of zeros packed; an entry that is named ../evil; without its directory; calls of
 * os.system, in protocol 2, protocol 4, and the format before 1.6. */
GByteArray *bad_zip_bomb (void);
GByteArray *bad_zip_up (void);
GByteArray *bad_zip_cut (void);
GByteArray *bad_zip_system (void);
GByteArray *bad_zip_system_4 (void);
GByteArray *bad_old_system (void);

#endif
