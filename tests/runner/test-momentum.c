/*
 * test-momentum.c: the optimizer's state in bf16 or in host memory, through the whole program: what a step
 * makes of it, what is saved, and what a run that stores it in another way takes of the file.
 */
#include "config.h"

#include "runner/base/error.h"
#include "kernels/half.h"
#include "tests/runner/stepper.h"
#include "tests/tree.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SGD "optimizer={type: SGD, lr: 0.01, momentum: 0.9, weight_decay: 0.25}"
#define ADAM "optimizer={type: Adam, lr: 0.01, betas: [0.8, 0.99], amsgrad: true}"
#define N_STEPS 5

static char *data;

static void
open_with (Stepper *f, const char *optimizer, const char *momentum)
{
  g_autofree char *form = g_strconcat ("memory.momentum=", momentum, NULL);
  const char *const changes[] = { optimizer, form, NULL };

  stepper_open (f, data, changes);
}

/* ---- Files ---- */

/* (transfer full) */
static RnSafetensors *
save (const Stepper *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  g_autofree char *path = g_build_filename (f->dir, "test.safetensors", NULL);

  rn_safetensors_writer_set_metadata (writer, "format", "runner-checkpoint-1");
  f->task->vtbl->add_tensors (f->task, writer, RN_TENSORS_OPTIMIZER);
  rn_safetensors_writer_save (writer, path, &error);
  g_assert_no_error (error);
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

static void
load (const Stepper *f, const RnSafetensors *file)
{
  g_autoptr (GError) error = NULL;
  guint found = 0;

  f->task->vtbl->load_tensors (f->task, file, &found, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (found, ==, RN_TENSORS_OPTIMIZER);
}

static const RnStoredTensor *
find_state (const RnSafetensors *file, const char *state, const char *param)
{
  g_autofree char *name = g_strconcat (state, "/", param, NULL);
  return rn_safetensors_find (file, name);
}

/* ---- In host memory ---- */

/* The same bits after steps, and from the file of the one in the other. */
static void
test_host (gconstpointer optimizer)
{
  Stepper plain, host, resumed;
  open_with (&plain, optimizer, "fp32");
  open_with (&host, optimizer, "host");
  open_with (&resumed, optimizer, "host");

  for (int i = 0; i < 3; i++)
    {
      stepper_train (&plain, i == 0);
      stepper_train (&host, i == 0);
    }
  g_autoptr (RnSafetensors) a = save (&plain), b = save (&host);
  guint n_states = 0;
  g_assert_cmpuint (rn_safetensors_size (a), ==, rn_safetensors_size (b));
  for (guint i = 0; i < rn_safetensors_size (a); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (a, i), *y = rn_safetensors_get (b, i);
      g_assert_cmpstr (x->name, ==, y->name);
      g_assert_cmpstr (x->type, ==, y->type);
      g_assert_true (x->bytes == y->bytes && memcmp (x->data, y->data, x->bytes) == 0);
      n_states += strchr (x->name, '/') != NULL;
    }
  g_assert_cmpuint (n_states, >=, 7);

  load (&resumed, a);
  for (int i = 0; i < 2; i++)
    {
      stepper_train (&plain, FALSE);
      stepper_train (&resumed, FALSE);
    }
  g_autoptr (GArray) want = stepper_read_all (&plain, plain.task->vtbl->read_param, FALSE),
                     got = stepper_read_all (&resumed, resumed.task->vtbl->read_param, FALSE);
  stepper_assert_same (want, got);
  stepper_close (&plain);
  stepper_close (&host);
  stepper_close (&resumed);
}

/* ---- In bf16 ---- */

/* The gradients of step @t, the same for all runs. */
static void
write_gradients (const Stepper *f, int t)
{
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < f->task->n_params; i++)
    {
      if (!f->task->params[i].is_trained)
        continue;
      gint64 n = stepper_n_elements (f, i);
      g_autofree float *grad = g_new (float, n);
      for (gint64 k = 0; k < n; k++)
        grad[k] = sinf ((float) (k + 1) * 0.7f + (float) t) * ldexpf (1, (int) (k % 9) - 4);
      f->task->vtbl->write_grad (f->task, i, grad, &error);
      g_assert_no_error (error);
    }
}

static void
step_on_written (const Stepper *f, int t)
{
  const double lrs[] = { 0.01 };
  const RnTaskUpdate step = { .lrs = lrs, .momentum = 0.9, .grad_multiplier = 1, .is_first = t == 0 };

  write_gradients (f, t);
  stepper_update (f, &step);
}

/*
 * Against the same run in single precision, with gradients that are given. Each step rounds v = mu v + g to
 * 8 bits, by at most 2^-8 of its size, so that v is off by E <- mu E + 2^-8 |v|, and p by lr E more. Weight
 * decay feeds the difference of p back into g. The arithmetic of single precision rounds a few times; ten
 * units are granted.
 */
static void
test_bf16_sgd (void)
{
  Stepper single, half;
  open_with (&single, SGD, "fp32");
  open_with (&half, SGD, "bf16");
  guint n_params = single.task->n_params;
  g_autofree GArray **off = g_new0 (GArray *, n_params); /* of double [2]: of v and p */
  gboolean differs = FALSE;

  for (int t = 0; t < N_STEPS; t++)
    {
      step_on_written (&single, t);
      step_on_written (&half, t);
      g_autoptr (RnSafetensors) a = save (&single), b = save (&half);
      for (guint i = 0; i < n_params; i++)
        {
          if (!single.task->params[i].is_trained)
            continue;
          const char *name = single.task->params[i].name;
          const RnStoredTensor *x = find_state (a, "momentum", name), *y = find_state (b, "momentum", name);
          g_autofree float *p = stepper_read (&single, single.task->vtbl->read_param, i),
                           *q = stepper_read (&half, half.task->vtbl->read_param, i);
          guint n = (guint) stepper_n_elements (&single, i);
          g_assert_cmpstr (x->type, ==, "F32");
          g_assert_cmpstr (y->type, ==, "BF16");
          g_assert_cmpuint (y->bytes * 2, ==, x->bytes);
          if (off[i] == NULL)
            {
              off[i] = g_array_new (FALSE, TRUE, 2 * sizeof (double));
              g_array_set_size (off[i], n);
            }
          for (guint k = 0; k < n; k++)
            {
              float v;
              guint16 stored;
              double *e = (double *) (void *) off[i]->data + 2 * k;
              memcpy (&v, x->data + k * sizeof v, sizeof v);
              memcpy (&stored, y->data + k * sizeof stored, sizeof stored);
              double w = (double) rn_float_from_bf16 (stored);
              e[0] = 0.9 * e[0] + 0.25 * e[1];
              e[0] +=
                  ldexp (1, -8) * (fabs ((double) v) + e[0]) + 10 * (double) FLT_EPSILON * fabs ((double) v);
              e[1] += 0.01 * e[0] + 10 * (double) FLT_EPSILON * fabs ((double) p[k]);
              g_assert_cmpfloat (fabs (w - (double) v), <=, e[0]);
              g_assert_cmpfloat (fabs ((double) (q[k] - p[k])), <=, e[1]);
              differs |= w != (double) v;
            }
        }
    }
  g_assert_true (differs);
  for (guint i = 0; i < n_params; i++)
    g_clear_pointer (&off[i], g_array_unref);
  stepper_close (&single);
  stepper_close (&half);
}

/* What is saved goes on bit for bit in a run that stores it alike. */
static void
test_bf16_resume (gconstpointer optimizer)
{
  Stepper a, b;
  open_with (&a, optimizer, "bf16");
  open_with (&b, optimizer, "bf16");

  for (int i = 0; i < 3; i++)
    stepper_train (&a, i == 0);
  g_autoptr (RnSafetensors) file = save (&a);
  load (&b, file);
  for (int i = 0; i < 2; i++)
    {
      stepper_train (&a, FALSE);
      stepper_train (&b, FALSE);
    }
  g_autoptr (GArray) want = stepper_read_all (&a, a.task->vtbl->read_param, FALSE),
                     got = stepper_read_all (&b, b.task->vtbl->read_param, FALSE);
  stepper_assert_same (want, got);
  stepper_close (&a);
  stepper_close (&b);
}

/* Single precision takes what bf16 holds as it is; the other way it is rounded to the nearest. */
static void
test_conversion (gconstpointer optimizer)
{
  Stepper single, half, again;
  open_with (&single, optimizer, "host");
  open_with (&half, optimizer, "bf16");
  open_with (&again, optimizer, "fp32");
  stepper_train (&single, TRUE);
  g_autoptr (RnSafetensors) exact = save (&single);
  load (&half, exact);
  g_autoptr (RnSafetensors) rounded = save (&half);
  load (&again, rounded);
  g_autoptr (RnSafetensors) widened = save (&again);
  guint n = 0;

  for (guint i = 0; i < rn_safetensors_size (exact); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (exact, i);
      const RnStoredTensor *y = rn_safetensors_find (rounded, x->name),
                           *z = rn_safetensors_find (widened, x->name);
      if (strchr (x->name, '/') == NULL || strcmp (x->type, "F32") != 0)
        continue;
      n++;
      for (gsize k = 0; k < x->bytes / sizeof (float); k++)
        {
          float from, back;
          guint16 bits;
          memcpy (&from, x->data + k * sizeof from, sizeof from);
          memcpy (&bits, y->data + k * sizeof bits, sizeof bits);
          memcpy (&back, z->data + k * sizeof back, sizeof back);
          g_assert_cmpuint (bits, ==, rn_bf16_from_float (from));
          g_assert_true (back == rn_float_from_bf16 (bits));
        }
    }
  g_assert_cmpuint (n, >=, 7);
  stepper_close (&single);
  stepper_close (&half);
  stepper_close (&again);
}

/* ---- What is refused, and what it takes ---- */

static void
test_bytes (void)
{
  Stepper single, half, host;
  open_with (&single, ADAM, "fp32");
  open_with (&half, ADAM, "bf16");
  open_with (&host, ADAM, "host");
  RnMemory a = rn_programs_memory (stepper_programs (&single)),
           b = rn_programs_memory (stepper_programs (&half)),
           c = rn_programs_memory (stepper_programs (&host));
  gsize padding = 64 * (gsize) single.task->n_params; /* of each tensor's end, at most */

  g_assert_cmpuint (a.state_bytes, ==, 3 * a.grad_bytes);
  g_assert_cmpuint (b.state_bytes, >=, a.state_bytes / 2);
  g_assert_cmpuint (b.state_bytes, <, a.state_bytes / 2 + 3 * padding);
  g_assert_cmpuint (b.host_bytes, ==, 0);
  g_assert_cmpuint (c.state_bytes, ==, 0);
  g_assert_cmpuint (c.host_state_bytes, ==, a.state_bytes);
  g_assert_cmpuint (c.host_bytes, ==, a.state_bytes);
  g_assert_cmpuint (c.total_bytes, <, a.total_bytes);
  stepper_close (&single);
  stepper_close (&half);
  stepper_close (&host);
}

static void
test_without_effect (void)
{
  static const char *const changes[] = { "optimizer={type: SGD, lr: 0.01}", "memory.momentum=host", NULL };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-momentum-XXXXXX", &error);

  g_assert_no_error (error);
  g_assert_null (small_detector_training (data, dir, changes, FALSE, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  g_assert_nonnull (strstr (error->message, "memory.momentum"));
  g_assert_nonnull (strstr (error->message, "nothing to store"));
  remove_tree (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  small_detector_register ();
  data = small_detector_data ();
  g_test_add_data_func ("/runner/momentum/host/sgd", SGD, test_host);
  g_test_add_data_func ("/runner/momentum/host/adam", ADAM, test_host);
  g_test_add_func ("/runner/momentum/bf16/sgd", test_bf16_sgd);
  g_test_add_data_func ("/runner/momentum/bf16/resume-sgd", SGD, test_bf16_resume);
  g_test_add_data_func ("/runner/momentum/bf16/resume-adam", ADAM, test_bf16_resume);
  g_test_add_data_func ("/runner/momentum/conversion/sgd", SGD, test_conversion);
  g_test_add_data_func ("/runner/momentum/conversion/adam", ADAM, test_conversion);
  g_test_add_func ("/runner/momentum/bytes", test_bytes);
  g_test_add_func ("/runner/momentum/without-effect", test_without_effect);
  int status = g_test_run ();
  remove_tree (data);
  g_free (data);
  return status;
}
