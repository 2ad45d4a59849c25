/*
 * keys.h: tables of configuration keys.
 *
 * A component (hook, backbone, transform, ...) describes its keys once. The table fills the component's
 * struct from YAML, checks types and bounds, rejects unknown keys with the nearest valid name, and prints the
 * documentation.
 */
#ifndef RUNNER_KEYS_H
#define RUNNER_KEYS_H

#include <glib.h>
#include <math.h>
#include <runner/export.h>
#include <runner/node.h>

G_BEGIN_DECLS

typedef enum
{
  RN_KEY_BOOL,        /* gboolean */
  RN_KEY_INT,         /* gint64 */
  RN_KEY_FLOAT,       /* double; an integer is accepted */
  RN_KEY_STRING,      /* char *, owned */
  RN_KEY_ENUM,        /* int, index into .names; a boolean matches the names "true" and "false" */
  RN_KEY_INT_LIST,    /* GArray * of gint64, owned; a single number is a list of one */
  RN_KEY_FLOAT_LIST,  /* GArray * of double, owned; a single number is a list of one */
  RN_KEY_STRING_LIST, /* char **, owned; a single string is a list of one */
  RN_KEY_MAP,         /* a struct inside the struct, described by .keys; see .present */
  RN_KEY_NODE,        /* const RnNode *, lent by the configuration: for what a table cannot describe */
  RN_KEY_UNUSED, /* accepted and said to be unused (keys of other frameworks' files); nothing is stored */
} RnKeyType;

enum
{
  RN_KEY_REQUIRED = 1 << 0,
  /* null is allowed: INT holds RN_NULL_INT, FLOAT NAN, STRING, LISTs and NODE NULL, MAP leaves *present FALSE
   */
  RN_KEY_NULLABLE = 1 << 1,
};

#define RN_NULL_INT G_MININT64

typedef struct _RnKeySpec RnKeySpec;

struct _RnKeySpec
{
  const char *name; /* NULL ends a table */
  RnKeyType type;
  gsize offset;             /* of the field in the component's struct */
  const char *deflt;        /* the default as YAML text ("0.9", "[0, 1]", "null"); NULL: zero bytes */
  const char *help;         /* one line, with the unit */
  double min, max;          /* bounds of numbers and of list items, both inclusive; both 0: no bounds */
  const char *const *names; /* ENUM: NULL-ended */
  const RnKeySpec *keys;    /* MAP: table of the inner struct, offsets relative to it */
  gsize present; /* MAP: offset of a gboolean that says whether the map was given (0: not wanted) */
  guint flags;
};

/* RN_KEY (MyHook, interval, RN_KEY_INT, "10", "iterations between two lines", .min = 1, .max = 1e9) */
#define RN_KEY(Struct, field, type_, deflt_, help_, ...)                                           \
  {                                                                                                \
    .name = #field, .type = (type_), .offset = G_STRUCT_OFFSET (Struct, field), .deflt = (deflt_), \
    .help = (help_), ##__VA_ARGS__                                                                 \
  }

#define RN_KEY_END \
  {                \
    .name = NULL   \
  }

G_END_DECLS

#endif
