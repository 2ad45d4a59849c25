/* The stack machine. */
#include "config.h"

#include "runner/weights/pickle.h"

#include "runner/base/error.h"
#include "runner/weights/pickle-private.h"

#include <string.h>

#define MAX_PROTOCOL 5
#define MAX_BYTES (256 << 20)
#define MAX_VALUES (1 << 21) /* a tensor of a checkpoint takes about 20, */
#define MAX_STEPS (1 << 23)  /* and about 40 opcodes */
#define MAX_TEXT 4096        /* of a name in a dict */
#define MAX_LINE 256         /* of the names of a global */

typedef enum
{
  OP_MARK = '(',
  OP_STOP = '.',
  OP_POP = '0',
  OP_POP_MARK = '1',
  OP_BINFLOAT = 'G',
  OP_BININT = 'J',
  OP_BININT1 = 'K',
  OP_BININT2 = 'M',
  OP_NONE = 'N',
  OP_BINPERSID = 'Q',
  OP_REDUCE = 'R',
  OP_BINSTRING = 'T',
  OP_SHORT_BINSTRING = 'U',
  OP_BINUNICODE = 'X',
  OP_EMPTY_LIST = ']',
  OP_APPEND = 'a',
  OP_BUILD = 'b',
  OP_GLOBAL = 'c',
  OP_APPENDS = 'e',
  OP_BINGET = 'h',
  OP_LONG_BINGET = 'j',
  OP_BINPUT = 'q',
  OP_LONG_BINPUT = 'r',
  OP_SETITEM = 's',
  OP_TUPLE = 't',
  OP_EMPTY_TUPLE = ')',
  OP_SETITEMS = 'u',
  OP_EMPTY_DICT = '}',
  OP_BINBYTES = 'B',
  OP_SHORT_BINBYTES = 'C',
  OP_PROTO = 0x80,
  OP_NEWOBJ = 0x81,
  OP_TUPLE1 = 0x85,
  OP_TUPLE2 = 0x86,
  OP_TUPLE3 = 0x87,
  OP_NEWTRUE = 0x88,
  OP_NEWFALSE = 0x89,
  OP_LONG1 = 0x8a,
  OP_LONG4 = 0x8b,
  OP_SHORT_BINUNICODE = 0x8c,
  OP_BINUNICODE8 = 0x8d,
  OP_BINBYTES8 = 0x8e,
  OP_EMPTY_SET = 0x8f,
  OP_ADDITEMS = 0x90,
  OP_FROZENSET = 0x91,
  OP_NEWOBJ_EX = 0x92,
  OP_STACK_GLOBAL = 0x93,
  OP_MEMOIZE = 0x94,
  OP_FRAME = 0x95,
  OP_BYTEARRAY8 = 0x96,
} Opcode;

typedef struct
{
  RnPickle *pickle;
  RnPickleBuilder builder;
  RnPickleSource *source;
  const char *name;
  guint64 limit, position; /* of the source, in bytes from its start */
  GPtrArray *stack;        /* of RnPickleValue, lent */
  GArray *marks;           /* of guint: lengths of the stack */
  GHashTable *memo;        /* number -> RnPickleValue */
} Machine;

/* ---- Reading ---- */

static gboolean G_GNUC_PRINTF (3, 4) fail (const Machine *m, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                "%s: pickle, byte %" G_GUINT64_FORMAT ": %s", m->name, m->position, text);
  return FALSE;
}

static gboolean
read_bytes (Machine *m, void *dst, gsize bytes, GError **error)
{
  if (bytes > m->source->remaining)
    return fail (m, error, "it ends early");
  if (bytes > m->limit - m->position)
    return fail (m, error, "more than %d MiB: no checkpoint of weights", MAX_BYTES >> 20);
  if (bytes > 0 && !m->source->read (m->source->source, dst, bytes, error))
    return FALSE;
  m->source->remaining -= bytes;
  m->position += bytes;
  return TRUE;
}

/* Unsigned, little-endian, of 1, 2, 4 or 8 bytes. */
static gboolean
read_number (Machine *m, gsize bytes, guint64 *number, GError **error)
{
  guint8 raw[8] = { 0 };

  if (!read_bytes (m, raw, bytes, error))
    return FALSE;
  *number = 0;
  for (gsize i = 0; i < bytes; i++)
    *number |= (guint64) raw[i] << (8 * i);
  return TRUE;
}

/* A line of a GLOBAL, without its end. */
static gboolean
read_line (Machine *m, char line[MAX_LINE], GError **error)
{
  for (gsize i = 0; i < MAX_LINE; i++)
    {
      if (!read_bytes (m, &line[i], 1, error))
        return FALSE;
      if (line[i] == '\n')
        {
          line[i] = '\0';
          return TRUE;
        }
    }
  return fail (m, error, "a global with a name of more than %d bytes", MAX_LINE);
}

/* ---- The stack ---- */

static gboolean
push (Machine *m, RnPickleValue *value)
{
  g_ptr_array_add (m->stack, value);
  return TRUE;
}

static RnPickleValue *
push_new (Machine *m, RnPickleKind kind)
{
  RnPickleValue *value = rn_pickle_value_new (m->pickle, kind);
  push (m, value);
  return value;
}

/* What stands on the stack above the last mark. */
static guint
n_above_mark (const Machine *m)
{
  return m->stack->len - (m->marks->len > 0 ? g_array_index (m->marks, guint, m->marks->len - 1) : 0);
}

/* The @i-th value from the top; NULL with an error when a mark or the bottom is nearer. */
static RnPickleValue *
peek (const Machine *m, guint i, GError **error)
{
  if (i < n_above_mark (m))
    return g_ptr_array_index (m->stack, m->stack->len - 1 - i);
  fail (m, error, "its stack is empty");
  return NULL;
}

static RnPickleValue *
pop (Machine *m, GError **error)
{
  RnPickleValue *value = peek (m, 0, error);
  if (value != NULL)
    g_ptr_array_set_size (m->stack, (int) m->stack->len - 1);
  return value;
}

/* Removes the last mark; its items are the last *@n of the stack, for the caller to take off. */
static gboolean
pop_mark (Machine *m, guint *n, GError **error)
{
  if (m->marks->len == 0)
    return fail (m, error, "a mark is missing");
  *n = n_above_mark (m);
  g_array_set_size (m->marks, m->marks->len - 1);
  return TRUE;
}

static RnPickleValue *
stack_at (const Machine *m, guint i)
{
  return g_ptr_array_index (m->stack, i);
}

static gboolean
push_tuple (Machine *m, guint n)
{
  RnPickleValue *tuple = rn_pickle_value_new (m->pickle, RN_PICKLE_TUPLE);
  for (guint i = m->stack->len - n; i < m->stack->len; i++)
    rn_pickle_append (tuple, stack_at (m, i));
  g_ptr_array_set_size (m->stack, (int) (m->stack->len - n));
  return push (m, tuple);
}

/* The last @n values go into the container below them; an object of a known class drops them. */
static gboolean
add_items (Machine *m, guint n, RnPickleKind kind, GError **error)
{
  if (n >= n_above_mark (m))
    return fail (m, error, "its stack is empty");
  RnPickleValue *container = stack_at (m, m->stack->len - 1 - n);
  if (container->kind != kind && container->kind != RN_PICKLE_OBJECT)
    return fail (m, error, "items for something that holds none");
  if (kind == RN_PICKLE_DICT && n % 2 != 0)
    return fail (m, error, "a key without a value");
  for (guint i = m->stack->len - n; i < m->stack->len && container->kind == kind; i++)
    rn_pickle_append (container, stack_at (m, i));
  g_ptr_array_set_size (m->stack, (int) (m->stack->len - n));
  return TRUE;
}

static gboolean
add_marked_items (Machine *m, RnPickleKind kind, GError **error)
{
  guint n = 0;
  return pop_mark (m, &n, error) && add_items (m, n, kind, error);
}

static gboolean
pop_to_mark (Machine *m, GError **error)
{
  guint n = 0;
  if (!pop_mark (m, &n, error))
    return FALSE;
  g_ptr_array_set_size (m->stack, (int) (m->stack->len - n));
  return TRUE;
}

/* ---- Opcodes ---- */

/* A text whose length stands in @length_bytes. */
static gboolean
do_text (Machine *m, RnPickleKind kind, gsize length_bytes, GError **error)
{
  guint64 size;

  if (!read_number (m, length_bytes, &size, error))
    return FALSE;
  if (size > MIN (m->source->remaining, m->limit - m->position))
    return fail (m, error, "a text of %" G_GUINT64_FORMAT " bytes goes beyond the end", size);
  char *bytes = g_try_malloc ((gsize) size + 1);
  if (bytes == NULL)
    return fail (m, error, "no memory for a text of %" G_GUINT64_FORMAT " bytes", size);
  RnPickleValue *value = push_new (m, kind);
  value->text.bytes = bytes;
  value->text.size = (gsize) size;
  bytes[size] = '\0';
  if (!read_bytes (m, bytes, (gsize) size, error))
    return FALSE;
  /* Once, here: many containers may share the text. */
  value->text.is_name =
      kind == RN_PICKLE_STRING && size <= MAX_TEXT && g_utf8_validate (bytes, (gssize) size, NULL);
  return TRUE;
}

/* Two's complement, of any length. */
static gboolean
do_long (Machine *m, gsize length_bytes, GError **error)
{
  if (!do_text (m, RN_PICKLE_BIG_INT, length_bytes, error))
    return FALSE;
  RnPickleValue *value = stack_at (m, m->stack->len - 1);
  gsize size = value->text.size;
  if (size > 8)
    return TRUE;

  guint64 number = size > 0 && (value->text.bytes[size - 1] & 0x80) != 0 ? G_MAXUINT64 : 0;
  for (gsize i = size; i-- > 0;)
    number = number << 8 | (guint8) value->text.bytes[i];
  g_free (value->text.bytes);
  value->kind = RN_PICKLE_INT;
  value->integer = (gint64) number;
  return TRUE;
}

static gboolean
do_int (Machine *m, gsize bytes, GError **error)
{
  guint64 number;

  if (!read_number (m, bytes, &number, error))
    return FALSE;
  push_new (m, RN_PICKLE_INT)->integer = bytes == 4 ? (gint32) (guint32) number : (gint64) number;
  return TRUE;
}

static gboolean
do_float (Machine *m, GError **error)
{
  guint64 bits = 0; /* big-endian, unlike all else */

  if (!read_bytes (m, &bits, sizeof bits, error))
    return FALSE;
  bits = GUINT64_FROM_BE (bits);
  memcpy (&push_new (m, RN_PICKLE_FLOAT)->real, &bits, sizeof bits);
  return TRUE;
}

static gboolean
do_global (Machine *m, const char *module, const char *name, GError **error)
{
  RnPickleGlobal global;

  if (!rn_pickle_find_global (module, name, &global))
    {
      g_autofree char *module_text = g_strescape (module, NULL), *name_text = g_strescape (name, NULL);
      return fail (m, error,
                   "refuses %.100s.%.100s: weights need no such object, and nothing in the file is executed "
                   "(a whole pickled model? save its state_dict () instead)",
                   module_text, name_text);
    }
  push_new (m, RN_PICKLE_GLOBAL)->global = global;
  return TRUE;
}

static gboolean
do_global_lines (Machine *m, GError **error)
{
  char module[MAX_LINE], name[MAX_LINE];
  return read_line (m, module, error) && read_line (m, name, error) && do_global (m, module, name, error);
}

static gboolean
do_stack_global (Machine *m, GError **error)
{
  RnPickleValue *name = pop (m, error), *module = name != NULL ? pop (m, error) : NULL;

  if (module == NULL)
    return FALSE;
  if (rn_pickle_string (module) == NULL || rn_pickle_string (name) == NULL)
    return fail (m, error, "a global whose name is no text");
  return do_global (m, rn_pickle_string (module), rn_pickle_string (name), error);
}

static gboolean
push_result (Machine *m, RnPickleValue *value, char *problem, GError **error)
{
  if (value != NULL)
    return push (m, value);
  fail (m, error, "%s", problem);
  g_free (problem);
  return FALSE;
}

/* A call with the arguments on top of the stack; keyword arguments, if any, are dropped. */
static gboolean
do_call (Machine *m, gboolean has_keywords, GError **error)
{
  char *problem = NULL;

  if (has_keywords && pop (m, error) == NULL)
    return FALSE;
  RnPickleValue *args = pop (m, error), *callable = args != NULL ? pop (m, error) : NULL;
  if (callable == NULL)
    return FALSE;
  RnPickleValue *value = rn_pickle_call (&m->builder, callable, args, &problem);
  return push_result (m, value, problem, error);
}

static gboolean
do_persistent (Machine *m, GError **error)
{
  char *problem = NULL;
  RnPickleValue *id = pop (m, error);
  if (id == NULL)
    return FALSE;
  RnPickleValue *value = rn_pickle_persistent (&m->builder, id, &problem);
  return push_result (m, value, problem, error);
}

static gboolean
do_get (Machine *m, gsize bytes, GError **error)
{
  guint64 number;

  if (!read_number (m, bytes, &number, error))
    return FALSE;
  RnPickleValue *value = g_hash_table_lookup (m->memo, GUINT_TO_POINTER ((guint) number));
  return value != NULL ? push (m, value) : fail (m, error, "memo %" G_GUINT64_FORMAT " is not set", number);
}

static gboolean
put (Machine *m, guint number, GError **error)
{
  RnPickleValue *value = peek (m, 0, error);
  if (value == NULL)
    return FALSE;
  g_hash_table_insert (m->memo, GUINT_TO_POINTER (number), value);
  return TRUE;
}

static gboolean
do_put (Machine *m, gsize bytes, GError **error)
{
  guint64 number;
  return read_number (m, bytes, &number, error) && put (m, (guint) number, error);
}

static gboolean
do_tuple (Machine *m, guint n, GError **error)
{
  return n <= n_above_mark (m) ? push_tuple (m, n) : fail (m, error, "its stack is empty");
}

static gboolean
do_proto (Machine *m, GError **error)
{
  guint64 protocol;

  if (!read_number (m, 1, &protocol, error))
    return FALSE;
  return protocol <= MAX_PROTOCOL || fail (m, error, "protocol %d is not known", (int) protocol);
}

static gboolean
do_marked (Machine *m, RnPickleKind kind, GError **error)
{
  guint n = 0;

  if (kind == RN_PICKLE_TUPLE)
    return pop_mark (m, &n, error) && push_tuple (m, n);
  if (!pop_to_mark (m, error))
    return FALSE;
  push_new (m, kind);
  return TRUE;
}

/* Attributes: those of a dict or a tensor are not weights. */
static gboolean
do_build (Machine *m, GError **error)
{
  return pop (m, error) != NULL && peek (m, 0, error) != NULL;
}

static gboolean
step (Machine *m, guint8 opcode, GError **error)
{
  guint64 ignored;

  switch ((Opcode) opcode)
    {
    case OP_PROTO:
      return do_proto (m, error);
    case OP_FRAME:
      return read_number (m, 8, &ignored, error);
    case OP_MARK:
      g_array_append_val (m->marks, m->stack->len);
      return TRUE;
    case OP_POP:
      return m->marks->len > 0 && n_above_mark (m) == 0 ? pop_to_mark (m, error) : pop (m, error) != NULL;
    case OP_POP_MARK:
      return pop_to_mark (m, error);

    case OP_NONE:
      return push_new (m, RN_PICKLE_NONE) != NULL;
    case OP_NEWTRUE:
    case OP_NEWFALSE:
      push_new (m, RN_PICKLE_BOOL)->integer = opcode == OP_NEWTRUE;
      return TRUE;
    case OP_BININT:
      return do_int (m, 4, error);
    case OP_BININT1:
      return do_int (m, 1, error);
    case OP_BININT2:
      return do_int (m, 2, error);
    case OP_LONG1:
      return do_long (m, 1, error);
    case OP_LONG4:
      return do_long (m, 4, error);
    case OP_BINFLOAT:
      return do_float (m, error);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINUNICODE:
      return do_text (m, RN_PICKLE_STRING, 1, error);
    case OP_BINSTRING:
    case OP_BINUNICODE:
      return do_text (m, RN_PICKLE_STRING, 4, error);
    case OP_BINUNICODE8:
      return do_text (m, RN_PICKLE_STRING, 8, error);
    case OP_SHORT_BINBYTES:
      return do_text (m, RN_PICKLE_BYTES, 1, error);
    case OP_BINBYTES:
      return do_text (m, RN_PICKLE_BYTES, 4, error);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8:
      return do_text (m, RN_PICKLE_BYTES, 8, error);

    case OP_EMPTY_LIST:
      return push_new (m, RN_PICKLE_LIST) != NULL;
    case OP_EMPTY_DICT:
      return push_new (m, RN_PICKLE_DICT) != NULL;
    case OP_EMPTY_SET:
      return push_new (m, RN_PICKLE_OBJECT) != NULL;
    case OP_EMPTY_TUPLE:
      return push_new (m, RN_PICKLE_TUPLE) != NULL;
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
      return do_tuple (m, opcode - OP_TUPLE1 + 1u, error);
    case OP_TUPLE:
      return do_marked (m, RN_PICKLE_TUPLE, error);
    case OP_FROZENSET:
      return do_marked (m, RN_PICKLE_OBJECT, error);
    case OP_APPEND:
      return add_items (m, 1, RN_PICKLE_LIST, error);
    case OP_APPENDS:
    case OP_ADDITEMS:
      return add_marked_items (m, RN_PICKLE_LIST, error);
    case OP_SETITEM:
      return add_items (m, 2, RN_PICKLE_DICT, error);
    case OP_SETITEMS:
      return add_marked_items (m, RN_PICKLE_DICT, error);

    case OP_BINGET:
      return do_get (m, 1, error);
    case OP_LONG_BINGET:
      return do_get (m, 4, error);
    case OP_BINPUT:
      return do_put (m, 1, error);
    case OP_LONG_BINPUT:
      return do_put (m, 4, error);
    case OP_MEMOIZE:
      return put (m, g_hash_table_size (m->memo), error);

    case OP_GLOBAL:
      return do_global_lines (m, error);
    case OP_STACK_GLOBAL:
      return do_stack_global (m, error);
    case OP_REDUCE:
    case OP_NEWOBJ:
      return do_call (m, FALSE, error);
    case OP_NEWOBJ_EX:
      return do_call (m, TRUE, error);
    case OP_BUILD:
      return do_build (m, error);
    case OP_BINPERSID:
      return do_persistent (m, error);
    case OP_STOP:
      break;
    }
  return fail (m, error, "opcode 0x%02x is not one that checkpoints use", opcode);
}

static gboolean
run (Machine *m, GError **error)
{
  guint8 opcode = 0;

  while (read_bytes (m, &opcode, 1, error))
    {
      if (opcode == OP_STOP)
        return (m->pickle->root = pop (m, error)) != NULL;
      if (m->pickle->values->len >= MAX_VALUES)
        return fail (m, error, "more than %d objects: no checkpoint of weights", MAX_VALUES);
      if (++m->pickle->n_steps > MAX_STEPS)
        return fail (m, error, "more than %d opcodes: no checkpoint of weights", MAX_STEPS);
      if (!step (m, opcode, error))
        return FALSE;
    }
  return FALSE;
}

RnPickle *
rn_pickle_read (RnPickleSource *source, const char *name, GError **error)
{
  g_autoptr (RnPickle) pickle = rn_pickle_new ();
  Machine m = { .pickle = pickle, .source = source, .name = name, .limit = MAX_BYTES };
  m.builder.pickle = pickle;
  m.builder.n_copies_left = MAX_VALUES;
  m.builder.storages = g_hash_table_new (g_str_hash, g_str_equal);
  m.stack = g_ptr_array_new ();
  m.marks = g_array_new (FALSE, FALSE, sizeof (guint));
  m.memo = g_hash_table_new (NULL, NULL);
  gboolean ok = run (&m, error);
  g_hash_table_unref (m.memo);
  g_array_unref (m.marks);
  g_ptr_array_unref (m.stack);
  g_hash_table_unref (m.builder.storages);
  return ok ? g_steal_pointer (&pickle) : NULL;
}
