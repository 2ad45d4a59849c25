/* The restricted unpickler: what it reads, and what it refuses. */
#include "config.h"

#include "runner/weights/pickle.h"

#include "runner/base/error.h"
#include "tests/weights/weights-fixture.h"

#include <string.h>

static gboolean
read_memory (gpointer source, void *dst, gsize bytes, GError **error)
{
  const char **at = source;
  memcpy (dst, *at, bytes);
  *at += bytes;
  return TRUE;
}

static RnPickle *
read_pickle (const char *bytes, gsize n, GError **error)
{
  const char *at = bytes;
  RnPickleSource source = { read_memory, &at, n };
  return rn_pickle_read (&source, "test", error);
}

static void
refused (const char *bytes, gsize n, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnPickle) pickle = read_pickle (bytes, n, &error);

  g_assert_null (pickle);
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  if (strstr (error->message, part) == NULL)
    g_error ("\"%s\" is not in: %s", part, error->message);
}

static RnPickle *
accepted (const char *bytes, gsize n)
{
  g_autoptr (GError) error = NULL;
  RnPickle *pickle = read_pickle (bytes, n, &error);
  g_assert_no_error (error);
  return pickle;
}

/* ---- Calls ---- */

static void
test_globals (void)
{
  static const struct
  {
    const char *bytes;
    gsize n;
    const char *part;
  } cases[] = {
    { BYTES ("\x80\x02"
             "cos\nsystem\nX\x04\0\0\0true\x85R."),
      "refuses os.system" },
    { BYTES ("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."), "refuses os.system" },
    { BYTES ("\x80\x02"
             "cposix\nsystem\n."),
      "refuses posix.system" },
    { BYTES ("\x80\x02"
             "cbuiltins\neval\n."),
      "refuses builtins.eval" },
    { BYTES ("\x80\x02"
             "c__builtin__\nexec\n."),
      "refuses __builtin__.exec" },
    { BYTES ("\x80\x02"
             "csubprocess\nPopen\n)\x81."),
      "refuses subprocess.Popen" },
    { BYTES ("\x80\x02"
             "ctorch\nload\n."),
      "refuses torch.load" },
    { BYTES ("\x80\x02"
             "ctorch.storage\n_load_from_bytes\n."),
      "refuses torch.storage._load_from_bytes" },
    { BYTES ("\x80\x02"
             "ctorch._utils\n_rebuild_qtensor\n."),
      "_rebuild_qtensor" },
    { BYTES ("\x80\x02"
             "ctorchvision.models.resnet\nResNet\n)\x81."),
      "save its state_dict" },
    { BYTES ("\x80\x02"
             "ccollections\nOrdered\n."),
      "refuses collections.Ordered" },
    { BYTES ("\x80\x02"
             "ccollections\nOrderedDict defaultdict\n."),
      "refuses" },
    { BYTES ("\x80\x02"
             "ccollections\n\n."),
      "refuses collections." },
    { BYTES ("\x80\x02"
             "c\x1b[2J\nx\n."),
      "refuses \\033[2J.x" }, /* what a terminal would obey */
    { BYTES ("\x80\x04K\1K\2\x93."), "no text" },
    { BYTES ("\x80\x02K\1)R."), "no global" },
    { BYTES ("\x80\x02"
             "ccollections\nOrderedDict\nK\1R."),
      "tuple of arguments" },
    { BYTES ("\x80\x02"
             "ctorch\nFloatStorage\n)R."),
      "a call of a type" },
    { BYTES ("\x80\x02"
             "ctorch._utils\n_rebuild_parameter\n)R."),
      "parameter without a tensor" },
    { BYTES ("\x80\x02"
             "ctorch\nSize\n)R."),
      "torch.Size" },
    { BYTES ("\x80\x02"
             "ccollections\nOrderedDict\nK\1\x85R."),
      "pairs" },
    { BYTES ("\x80\x02"
             "ccollections\nOrderedDict\n]K\1a\x85R."),
      "pairs" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    refused (cases[i].bytes, cases[i].n, cases[i].part);

  g_autofree char *name = g_strnfill (1000, 'a');
  g_autofree char *pickle = g_strconcat ("c", name, "\nb\n.", NULL);
  refused (pickle, strlen (pickle), "name of more than");
}

/* Settings beside weights: known classes stand for nothing, and take what is put into them. */
static void
test_inert (void)
{
  g_autoptr (RnPickle) pickle =
      accepted (BYTES ("\x80\x02("
                       "cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\2\0\0\0i8\x85RU\1a\x86R"
                       "K\1b"
                       "cbuiltins\nset\n]K\1a\x85R"
                       "cmmengine.logging.history_buffer\nHistoryBuffer\n)\x81}b"
                       "\x8f(K\1K\2\x90"
                       "(K\1\x91"
                       "ccollections\ndefaultdict\ncbuiltins\nlist\n\x85RK\1]s"
                       "t."));
  g_assert_cmpuint (rn_pickle_n_items (pickle->root), ==, 6);
  for (guint i = 0; i < 5; i++)
    g_assert_cmpint (rn_pickle_item (pickle->root, i)->kind, ==, RN_PICKLE_OBJECT);
  g_assert_cmpuint (rn_pickle_n_items (rn_pickle_item (pickle->root, 5)), ==, 2);
}

/* ---- Opcodes ---- */

static void
test_values (void)
{
  g_autoptr (RnPickle) pickle = accepted (BYTES ("\x80\x05\x95\0\0\0\0\0\0\0\0("
                                                 "K\xff"
                                                 "M\xff\xff"
                                                 "J\xfe\xff\xff\xff"
                                                 "\x8a\0"
                                                 "\x8a\1\xff"
                                                 "\x8b\4\0\0\0\0\0\0\x80"
                                                 "\x8a\x08\0\0\0\0\0\0\0\x80"
                                                 "\x8a\x09\0\0\0\0\0\0\0\0\1"
                                                 "G\xbf\xf8\0\0\0\0\0\0"
                                                 "N\x88\x89"
                                                 "U\2ab"
                                                 "T\1\0\0\0c"
                                                 "X\0\0\0\0"
                                                 "\x8c\1d"
                                                 "\x8d\1\0\0\0\0\0\0\0e"
                                                 "C\1f"
                                                 "B\1\0\0\0g"
                                                 "\x8e\1\0\0\0\0\0\0\0h"
                                                 "\x96\1\0\0\0\0\0\0\0i"
                                                 "t."));
  static const gint64 ints[] = { 255, 65535, -2, 0, -1, -2147483648, G_MININT64 };
  static const char *const texts[] = { "ab", "c", "", "d", "e" };
  guint at = 0;

  for (guint i = 0; i < G_N_ELEMENTS (ints); i++)
    g_assert_cmpint (rn_pickle_item (pickle->root, at++)->integer, ==, ints[i]);
  g_assert_cmpint (rn_pickle_item (pickle->root, at++)->kind, ==, RN_PICKLE_BIG_INT);
  g_assert_cmpfloat (rn_pickle_item (pickle->root, at++)->real, ==, -1.5);
  g_assert_cmpint (rn_pickle_item (pickle->root, at++)->kind, ==, RN_PICKLE_NONE);
  g_assert_cmpint (rn_pickle_item (pickle->root, at++)->integer, ==, 1);
  g_assert_cmpint (rn_pickle_item (pickle->root, at++)->integer, ==, 0);
  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    g_assert_cmpstr (rn_pickle_string (rn_pickle_item (pickle->root, at++)), ==, texts[i]);
  for (int c = 'f'; c <= 'i'; c++)
    {
      const RnPickleValue *value = rn_pickle_item (pickle->root, at++);
      g_assert_cmpint (value->kind, ==, RN_PICKLE_BYTES);
      g_assert_cmpint (value->text.bytes[0], ==, c);
      g_assert_null (rn_pickle_string (value));
    }
  g_assert_cmpuint (rn_pickle_n_items (pickle->root), ==, at);
}

static void
test_containers (void)
{
  /* {"a": (1,), "a": [1, 2, (1, 2, 3), ()], "b": the same list}, through memo 0, 300 and the next free one.
   */
  g_autoptr (RnPickle) pickle = accepted (BYTES ("\x80\x04}q\0X\1\0\0\0aK\1\x85s"
                                                 "(X\1\0\0\0a]r\x2c\1\0\0(K\1K\2e(K\1K\2K\3tah\0"
                                                 "0"
                                                 ")aX\1\0\0\0bj\x2c\1\0\0u"
                                                 "K\x09\x94"
                                                 "0"
                                                 "h\2"
                                                 "0"
                                                 "(K\1K\2"
                                                 "1"
                                                 "."));
  const RnPickleValue *list = rn_pickle_lookup (pickle->root, "a");

  g_assert_cmpint (list->kind, ==, RN_PICKLE_LIST);
  g_assert_cmpuint (rn_pickle_n_items (list), ==, 4);
  g_assert_cmpuint (rn_pickle_n_items (rn_pickle_item (list, 2)), ==, 3);
  g_assert_true (rn_pickle_lookup (pickle->root, "b") == list);
  g_assert_null (rn_pickle_lookup (pickle->root, "c"));
  g_assert_null (rn_pickle_lookup (list, "a"));

  /* OrderedDict ([["a", 1]]) as Python 2 wrote it. */
  g_autoptr (RnPickle) old = accepted (BYTES ("\x80\x02"
                                              "ccollections\nOrderedDict\n](](U\1aK\1ee\x85R."));
  g_assert_cmpint (rn_pickle_lookup (old->root, "a")->integer, ==, 1);
}

static void
test_opcodes (void)
{
  static const struct
  {
    const char *bytes;
    gsize n;
    const char *part;
  } cases[] = {
    { BYTES (""), "ends early" },
    { BYTES ("\x80"), "ends early" },
    { BYTES ("\x80\x02N"), "ends early" },
    { BYTES ("\x80\x06N."), "protocol 6" },
    { BYTES ("."), "stack is empty" },
    { BYTES ("(."), "stack is empty" },
    { BYTES ("N(."), "stack is empty" }, /* what lies below a mark is out of reach */
    { BYTES ("NN(\x86."), "stack is empty" },
    { BYTES ("]N(a."), "stack is empty" },
    { BYTES ("Nt."), "mark is missing" },
    { BYTES ("]e."), "mark is missing" },
    { BYTES ("1."), "mark is missing" },
    { BYTES ("0."), "stack is empty" },
    { BYTES ("h\0."), "memo 0" },
    { BYTES ("j\xff\xff\xff\xff."), "memo 4294967295" },
    { BYTES ("q\0."), "stack is empty" },
    { BYTES ("K\1K\2a."), "holds none" },
    { BYTES (")K\2a."), "holds none" },
    { BYTES ("](K\1K\2u."), "holds none" },
    { BYTES ("}(K\1u."), "without a value" },
    { BYTES ("b."), "stack is empty" },
    { BYTES ("Nb."), "stack is empty" },
    { BYTES ("Q."), "stack is empty" },
    { BYTES ("NQ."), "no storage" },
    { BYTES ("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."), "beyond the end" },
    { BYTES ("\x8e\xff\xff\xff\xff\xff\xff\xff\xff."), "beyond the end" },
    { BYTES ("X\xff\xff\xff\xff."), "beyond the end" },
    { BYTES ("I1\n."), "opcode 0x49" },
    { BYTES ("(ios\nsystem\n."), "opcode 0x69" },
    { BYTES ("\x82\1."), "opcode 0x82" },
    { BYTES ("Pabc\n."), "opcode 0x50" },
    { BYTES ("\x97."), "opcode 0x97" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    refused (cases[i].bytes, cases[i].n, cases[i].part);
}

/* ---- Bounds ---- */

static void
test_too_much (void)
{
  gsize n = (gsize) 3 << 20;
  g_autofree char *lists = g_strnfill (n, ']');
  refused (lists, n, "objects");
  g_autofree char *marks = g_strnfill (3 * n, '(');
  refused (marks, 3 * n, "opcodes");

  /* A dict of many entries, and then dicts made from it over and over. */
  g_autoptr (GString) dicts = g_string_new ("N)q\3"
                                            "0"
                                            "}q\1(");
  for (guint i = 0; i < 1 << 18; i++)
    (g_string_append_len) (dicts, BYTES ("h\3h\3"));
  (g_string_append_len) (dicts, BYTES ("uh\1\x85q\2"
                                       "0"));
  for (guint i = 0; i < 1000; i++)
    (g_string_append_len) (dicts, BYTES ("ccollections\nOrderedDict\nh\2R0"));
  g_string_append (dicts, "N.");
  refused (dicts->str, dicts->len, "over and over");
}

/* Values that contain themselves are freed once. */
static void
test_cycles (void)
{
  g_autoptr (RnPickle) list = accepted (BYTES ("]q\0h\0a."));
  g_assert_true (rn_pickle_item (list->root, 0) == list->root);
  g_autoptr (RnPickle) dict = accepted (BYTES ("}q\0(X\1\0\0\0ah\0X\1\0\0\0b]q\1h\1ah\0au."));
  g_assert_true (rn_pickle_lookup (dict->root, "a") == dict->root);

  /* A million tuples in each other: no recursion anywhere. */
  g_autoptr (GString) deep = g_string_new (")");
  for (guint i = 0; i < 1000000; i++)
    g_string_append_c (deep, '\x85');
  g_string_append_c (deep, '.');
  g_autoptr (RnPickle) pickle = accepted (deep->str, deep->len);
  g_assert_cmpuint (rn_pickle_n_items (pickle->root), ==, 1);
}

/* ---- Tensors ---- */

typedef struct
{
  const char *storage;
  gint64 n, offset;
  int rank;
  gint64 sizes[9], strides[9];
  const char *refusal; /* NULL: sound */
} Tensor;

static void
test_tensors (void)
{
  static const Tensor cases[] = {
    { "FloatStorage", 6, 0, 2, { 2, 3 }, { 3, 1 }, NULL },
    { "FloatStorage", 6, 5, 1, { 1 }, { 99 }, NULL },
    { "FloatStorage", 6, 99, 1, { 0 }, { 1 }, NULL },
    { "FloatStorage", 1, 0, 0, { 0 }, { 0 }, NULL },
    { "FloatStorage", 1, 0, 1, { 1 << 24 }, { 0 }, NULL },
    { "FloatStorage", 6, 0, 2, { 2, 4 }, { 3, 1 }, "ends at byte 28 of a storage of 24" },
    { "FloatStorage", 6, 1, 2, { 2, 3 }, { 3, 1 }, "ends at byte 28" },
    { "FloatStorage", 0, 0, 0, { 0 }, { 0 }, "ends at byte 4" },
    { "FloatStorage", 6, 0, 1, { -1 }, { 1 }, "no counts" },
    { "FloatStorage", 6, 5, 1, { 3 }, { -1 }, "no counts" },
    { "FloatStorage", 6, -1, 1, { 1 }, { 1 }, "no counts" },
    { "FloatStorage", 6, 0, 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 1 }, "8 dimensions" },
    { "FloatStorage",
      6,
      0,
      2,
      { G_GINT64_CONSTANT (1) << 32, G_GINT64_CONSTANT (1) << 32 },
      { 0, 0 },
      "larger than memory" },
    { "FloatStorage", 6, 0, 1, { G_MAXINT64 }, { 0 }, "larger than memory" },
    { "FloatStorage", 6, 0, 2, { 3, 3 }, { G_MAXINT64, G_MAXINT64 }, "larger than memory" },
    { "FloatStorage", 6, 0, 1, { 5 }, { G_GINT64_CONSTANT (1) << 62 }, "larger than memory" },
    { "FloatStorage", 6, G_MAXINT64, 1, { 1 }, { 1 }, "larger than memory" },
    { "FloatStorage", 6, 0, 2, { 0, G_MAXINT64 }, { 1, 1 }, "larger than memory" },
    { "FloatStorage", 1, 0, 1, { (1 << 24) + 1 }, { 0 }, "elements in a storage of 4 bytes" },
    { "FloatStorage", -1, 0, 1, { 1 }, { 1 }, "no sound size" },
    { "DoubleStorage", G_GINT64_CONSTANT (1) << 61, 0, 1, { 1 }, { 1 }, "no sound size" },
    { "float32", 6, 0, 1, { 1 }, { 1 }, "sound type" },
    { "QInt8Storage", 6, 0, 1, { 1 }, { 1 }, "refuses torch.QInt8Storage" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const Tensor *c = &cases[i];
      g_autoptr (GString) text = g_string_new (NULL);
      pickle_tensor (text, c->storage, "0", c->n, c->offset, c->rank, c->sizes, c->strides);
      g_string_append_c (text, '.');
      if (c->refusal != NULL)
        {
          refused (text->str, text->len, c->refusal);
          continue;
        }
      g_autoptr (RnPickle) pickle = accepted (text->str, text->len);
      g_assert_cmpint (pickle->root->kind, ==, RN_PICKLE_TENSOR);
      g_assert_cmpint (pickle->root->tensor->rank, ==, c->rank);
      gsize offset = c->sizes[0] == 0 && c->rank > 0 ? 0 : (gsize) c->offset * 4; /* empty: nowhere */
      g_assert_cmpuint (pickle->root->tensor->offset, ==, offset);
    }
}

static void
refused_key (const char *key)
{
  static const gint64 one = 1;
  g_autoptr (GString) text = g_string_new (NULL);
  pickle_tensor (text, "FloatStorage", key, 1, 0, 1, &one, &one);
  g_string_append_c (text, '.');
  refused (text->str, text->len, "sound type and key");
}

static void
test_storages (void)
{
  static const gint64 one = 1;

  refused_key ("../../etc/passwd");
  refused_key ("..");
  refused_key ("");
  refused_key ("a\\b");

  /* The same storage twice is one; with another size it is a lie. */
  for (int differs = 0; differs < 2; differs++)
    {
      g_autoptr (GString) text = g_string_new ("(");
      pickle_tensor (text, "FloatStorage", "0", 6, 0, 1, &one, &one);
      pickle_tensor (text, "FloatStorage", "0", differs ? 7 : 6, 1, 1, &one, &one);
      g_string_append (text, "t.");
      if (differs)
        refused (text->str, text->len, "described twice");
      else
        {
          g_autoptr (RnPickle) pickle = accepted (text->str, text->len);
          g_assert_cmpuint (pickle->storages->len, ==, 1);
          g_assert_cmpuint (rn_pickle_item (pickle->root, 1)->tensor->offset, ==, 4);
        }
    }
#define HEAD "ctorch._utils\n_rebuild_tensor\n((U\7storagectorch\nShortStorage\nU\1aU\3cpuK\x0a"
#define TAIL "tQK\1K\2\x85K\1\x85tR."
  /* A view of an older file: elements 4 to 6 of 10; the tensor has the last two of them. */
  g_autoptr (RnPickle) view = accepted (BYTES (HEAD "(U\1vK\4K\3t" TAIL));
  g_assert_cmpuint (view->root->tensor->offset, ==, 10);
  g_assert_cmpstr (view->root->tensor->type->name, ==, "I16");
  refused (BYTES (HEAD "(U\1vK\4K\2t" TAIL), "ends at byte 6 of a storage of 4");
  refused (BYTES (HEAD "(U\1vK\4K\7t" TAIL), "leaves storage");
  refused (BYTES (HEAD "K\1" TAIL), "leaves storage");
  refused (BYTES ("(U\6moduleK\1K\2K\3tQ."), "state_dict ()");
  refused (BYTES ("ctorch._utils\n_rebuild_tensor_v2\n(K\1K\2K\3K\4tR."), "without a storage");
}

/* Types without a storage class of their own name their dtype. */
static void
test_untyped (void)
{
#define UNTYPED(n)                                                                               \
  "ctorch._utils\n_rebuild_tensor_v3\n((U\7storagectorch.storage\nUntypedStorage\nU\1aU\3cpuK" n \
  "tQK\1K\2\x85K\1\x85\x89}ctorch\nuint16\ntR."
  g_autoptr (RnPickle) pickle = accepted (BYTES (UNTYPED ("\6")));
  g_assert_cmpstr (pickle->root->tensor->type->name, ==, "U16");
  g_assert_cmpuint (pickle->root->tensor->offset, ==, 2);
  refused (BYTES (UNTYPED ("\5")), "ends at byte 6 of a storage of 5");
}

/* Their storage holds what they are read from: without the mark, each value would have the wrong sign. */
static void
test_views (void)
{
#define VIEW(name, metadata)             \
  "ctorch._utils\n_rebuild_tensor_" name \
  "\n((U\7storagectorch\nShortStorage\nU\1aU\3cpuK\3tQK\1K\2\x85K\1\x85\x89}" metadata "tR."
  g_autoptr (RnPickle) plain = accepted (BYTES (VIEW ("v2", "}U\3neg\x89s")));
  g_assert_cmpint (plain->root->tensor->n, ==, 2);
  g_autoptr (RnPickle) none = accepted (BYTES (VIEW ("v2", "N")));
  g_assert_cmpint (none->root->tensor->n, ==, 2);
  refused (BYTES (VIEW ("v2", "}U\3neg\x88s")), "negated or conjugated view");
  refused (BYTES (VIEW ("v2", "}U\4conj\x88s")), "negated or conjugated view");
  refused (BYTES (VIEW ("v3", "ctorch\nint16\n}U\3neg\x88s")), "negated or conjugated view");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/pickle/globals", test_globals);
  g_test_add_func ("/pickle/inert", test_inert);
  g_test_add_func ("/pickle/values", test_values);
  g_test_add_func ("/pickle/containers", test_containers);
  g_test_add_func ("/pickle/opcodes", test_opcodes);
  g_test_add_func ("/pickle/too-much", test_too_much);
  g_test_add_func ("/pickle/cycles", test_cycles);
  g_test_add_func ("/pickle/tensors", test_tensors);
  g_test_add_func ("/pickle/storages", test_storages);
  g_test_add_func ("/pickle/untyped", test_untyped);
  g_test_add_func ("/pickle/views", test_views);
  return g_test_run ();
}
