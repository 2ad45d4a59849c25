#include "config.h"

#include "datasets/index.h"

RnIndex *
rn_index_new (void)
{
  RnIndex *index = g_new (RnIndex, 1);

  index->strings = g_string_new (NULL);
  index->images = g_array_new (FALSE, TRUE, sizeof (RnIndexImage));
  index->boxes = g_array_new (FALSE, FALSE, sizeof (float[4]));
  index->labels = g_array_new (FALSE, FALSE, sizeof (int16_t));
  index->difficult = g_byte_array_new ();
  index->names = g_ptr_array_new_with_free_func (g_free);
  return index;
}

void
rn_index_free (RnIndex *index)
{
  if (index == NULL)
    return;
  g_string_free (index->strings, TRUE);
  g_array_unref (index->images);
  g_array_unref (index->boxes);
  g_array_unref (index->labels);
  g_byte_array_unref (index->difficult);
  g_ptr_array_unref (index->names);
  g_free (index);
}

guint32
rn_index_add_string (RnIndex *index, const char *text)
{
  guint32 at = (guint32) index->strings->len;

  g_string_append (index->strings, text);
  g_string_append_c (index->strings, '\0');
  return at;
}

void
rn_index_add_object (RnIndex *index, const float box[4], int16_t label, gboolean difficult)
{
  guint8 flag = difficult != FALSE;

  g_array_append_vals (index->boxes, box, 1);
  g_array_append_val (index->labels, label);
  g_byte_array_append (index->difficult, &flag, 1);
}

int64_t *
rn_index_count_names (const RnIndex *index)
{
  int64_t *counts = g_new0 (int64_t, index->names->len + 1);

  for (guint i = 0; i < index->labels->len; i++)
    counts[g_array_index (index->labels, int16_t, i)]++;
  return counts;
}
