/*
 * cudnn-cases.h: what cuDNN's graph API answers, case by case, as far as convolutions need it: which calls
 * are refused, and with which status; which graphs have engines, on which devices; when a stored plan is. The
 * answers are those of cuDNN 9.19, which gives them without a device. The same table is put to the real
 * library and to the simulated one, and both have to agree with it.
 */
#ifndef TESTS_GPU_CUDNN_CASES_H
#define TESTS_GPU_CUDNN_CASES_H

#include <glib.h>

G_BEGIN_DECLS

/* The library's major and minor version that the table was asked of. */
#define CUDNN_CASES_VERSION 919

typedef struct
{
  /* Around each case. @is_lax: the library lets something pass that the simulation reports. */
  void (*begin) (void);
  void (*end) (gboolean is_lax);
} CudnnCaseHooks;

/* Adds a test for each case. @hooks is lent for good. */
void cudnn_cases_add (const CudnnCaseHooks *hooks);

/* ---- for the parts of the table ---- */

void cudnn_case_begin (void);
void cudnn_case_end (gboolean is_lax);
void cudnn_case_add (const char *group, const char *name, gconstpointer data, GTestDataFunc test);
/* @table: an array of structures with a name. */
#define CUDNN_CASES_ADD(group, table, test)        \
  for (gsize i = 0; i < G_N_ELEMENTS (table); i++) \
  cudnn_case_add (group, (table)[i].name, &(table)[i], test)

void cudnn_tensor_cases_add (void);
void cudnn_graph_cases_add (void);
void cudnn_plan_cases_add (void);

G_END_DECLS

#endif
