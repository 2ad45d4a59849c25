/* index.h: what is known of the images of one set, packed: no allocation per image or per object. */
#ifndef RUNNER_DATASETS_INDEX_H
#define RUNNER_DATASETS_INDEX_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct
{
  guint32 id, path; /* where they begin in the index's strings */
  int32_t width, height;
  guint32 first, n; /* objects */
} RnIndexImage;

typedef struct
{
  GString *strings;      /* NUL-ended texts, one after the other */
  GArray *images;        /* RnIndexImage */
  GArray *boxes;         /* float[4], pixels of the decoded image */
  GArray *labels;        /* int16_t: index in names, or class once the classes are known */
  GByteArray *difficult; /* 0 or 1 */
  GPtrArray *names;      /* char *: names seen, in no special order */
} RnIndex;

RnIndex *rn_index_new (void);
void rn_index_free (RnIndex *index);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnIndex, rn_index_free)

/* Where @text begins. */
guint32 rn_index_add_string (RnIndex *index, const char *text);
void rn_index_add_object (RnIndex *index, const float box[4], int16_t label, gboolean difficult);

static inline RnIndexImage *
rn_index_image (const RnIndex *index, int64_t i)
{
  return &g_array_index (index->images, RnIndexImage, i);
}

static inline const char *
rn_index_string (const RnIndex *index, guint32 at)
{
  return index->strings->str + at;
}

/* Objects of each name. (transfer full) [names] */
int64_t *rn_index_count_names (const RnIndex *index);

G_END_DECLS

#endif
