/*
 * pickle.h: what a pickle of tensors describes, read without executing anything.
 *
 * Python's pickle is a program for a stack machine that may call any function. This reader knows the opcodes
 * of protocols 2 to 5 that checkpoints use, and a list of globals (pickle-globals.c) that it understands as
 * data; any other opcode or global is refused by name. Work and memory are bounded by the size of the pickle,
 * and by limits far above what checkpoints need; values may share and contain each other, as the memo allows,
 * so whoever walks them must bound depth and number of visits.
 */
#ifndef RUNNER_WEIGHTS_PICKLE_H
#define RUNNER_WEIGHTS_PICKLE_H

#include "runner/weights/weights-types.h"

#include <stdint.h>

G_BEGIN_DECLS

#define RN_PICKLE_MAX_DIMS 8

typedef enum
{
  RN_PICKLE_NONE,
  RN_PICKLE_BOOL,
  RN_PICKLE_INT,
  RN_PICKLE_BIG_INT, /* of more than 8 bytes, in .text: two's complement, little-endian */
  RN_PICKLE_FLOAT,
  RN_PICKLE_STRING,
  RN_PICKLE_BYTES,
  RN_PICKLE_LIST,
  RN_PICKLE_TUPLE,
  RN_PICKLE_DICT,   /* .items holds key, value, key, value */
  RN_PICKLE_OBJECT, /* of a known class that carries no weights */
  RN_PICKLE_GLOBAL,
  RN_PICKLE_STORAGE,
  RN_PICKLE_TENSOR,
} RnPickleKind;

/* What a global does when the pickle calls it. */
typedef enum
{
  RN_PICKLE_INERT, /* makes an OBJECT */
  RN_PICKLE_MAKES_DICT,
  RN_PICKLE_MAKES_TUPLE,
  RN_PICKLE_MAKES_TENSOR,    /* _rebuild_tensor (_v2): storage, offset, size, stride, ... */
  RN_PICKLE_MAKES_TENSOR_V3, /* the same and, seventh, the dtype */
  RN_PICKLE_MAKES_PARAMETER, /* a tensor, ... */
  RN_PICKLE_STORAGE_TYPE,    /* not called: the class that a storage's description names */
  RN_PICKLE_DTYPE,           /* not called */
} RnPickleRole;

typedef struct
{
  RnPickleRole role;
  const RnWeightType *type; /* of RN_PICKLE_STORAGE_TYPE and _DTYPE */
} RnPickleGlobal;

typedef struct
{
  char *key; /* names the data: a file of the archive, or an entry of the list of storages */
  const RnWeightType *type;
  gsize bytes;
} RnPickleStorage;

typedef struct
{
  const RnWeightType *type;
  guint storage; /* in RnPickle.storages */
  gsize offset;  /* of the first element in the storage, in bytes */
  int rank;
  int64_t dims[RN_PICKLE_MAX_DIMS], strides[RN_PICKLE_MAX_DIMS]; /* not negative, in elements */
  int64_t n;
} RnPickleTensor;

typedef struct _RnPickleValue RnPickleValue;
struct _RnPickleValue
{
  RnPickleKind kind;
  union
  {
    gint64 integer; /* BOOL, INT */
    double real;
    struct
    {
      char *bytes; /* ends with a NUL beyond size; may hold others */
      gsize size;
      gboolean is_name; /* a STRING without NULs, valid UTF-8, of a length that names have */
    } text;             /* STRING, BYTES, BIG_INT */
    GPtrArray *items;   /* LIST, TUPLE, DICT: lent values; NULL when empty */
    RnPickleGlobal global;
    struct
    {
      guint index;        /* in RnPickle.storages */
      gsize start, bytes; /* the part that is meant: older files have views of storages */
    } storage;
    RnPickleTensor *tensor;
  };
};

typedef struct
{
  RnPickleValue *root;
  GPtrArray *storages; /* of RnPickleStorage, each key once */
  guint n_steps;       /* opcodes: no tree has more entries, only values that are shared */
  GPtrArray *values;   /* every RnPickleValue: owns them, so that cycles are no matter */
} RnPickle;

/* Bytes of one pickle, in order. */
typedef struct
{
  gboolean (*read) (gpointer source, void *dst, gsize bytes, GError **error);
  gpointer source;
  guint64 remaining; /* at most so many bytes follow; the reader counts it down */
} RnPickleSource;

/*
 * Reads from @source up to and with the pickle's STOP. @name stands in front of messages.
 * RN_CHECKPOINT_ERROR_DAMAGED: not a pickle, a refused opcode or global, a tensor that leaves its storage, or
 * more than a checkpoint of weights has.
 */
RnPickle *rn_pickle_read (RnPickleSource *source, const char *name, GError **error);
void rn_pickle_free (RnPickle *pickle);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnPickle, rn_pickle_free)

guint rn_pickle_n_items (const RnPickleValue *value); /* of a container; 0 for anything else */
RnPickleValue *rn_pickle_item (const RnPickleValue *value, guint i);
/* The text of a STRING that is a name; else NULL. */
const char *rn_pickle_string (const RnPickleValue *value);
/* The last value of @key in a DICT; NULL if there is none or @dict is none. */
RnPickleValue *rn_pickle_lookup (const RnPickleValue *dict, const char *key);

G_END_DECLS

#endif
