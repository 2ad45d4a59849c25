/* voc-cache.h: keeps the index of a VOC folder for the next start of the program. */
#ifndef RUNNER_DATASETS_VOC_CACHE_H
#define RUNNER_DATASETS_VOC_CACHE_H

#include "datasets/index.h"

G_BEGIN_DECLS

/* What tells whether a file is still the one that was read. */
typedef struct
{
  int64_t mtime; /* nanoseconds since 1970 */
  int64_t size;  /* bytes; -1: no such file */
} RnFileStamp;

/* The files behind one image of an index. */
typedef struct
{
  RnFileStamp image, annotation;
} RnVocStamps;

/* Counts that the scan reports, so that a cached start can report them too. */
#define RN_VOC_N_FINDINGS 5

/* What an index was made from, and what came of it. Strings and arrays are lent. */
typedef struct
{
  const char *ann_file, *prefix;
  RnFileStamp list;    /* of ann_file */
  RnVocStamps *stamps; /* [images] */
  int64_t *findings;   /* [RN_VOC_N_FINDINGS] */
} RnVocSource;

RnFileStamp rn_file_stamp (const char *path);
/* Path of the annotation of @id. (transfer full) */
char *rn_voc_annotation_path (const char *prefix, const char *id);

/*
 * The index that rn_voc_cache_save left in @dir for these paths, if not one of its files has changed in time
 * or size since; else NULL. The file is checked as any foreign file: a damaged one counts as none. Fills
 * source->findings.
 */
RnIndex *rn_voc_cache_load (const char *dir, const RnVocSource *source);
/* Does nothing if there is no folder @dir; a file that cannot be written is a warning. */
void rn_voc_cache_save (const char *dir, const RnVocSource *source, const RnIndex *index);

G_END_DECLS

#endif
