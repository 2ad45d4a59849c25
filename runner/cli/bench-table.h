/*
 * bench-table.h: a configuration against itself with strategies: one row each, measured in processes of their
 * own, interleaved, several times.
 */
#ifndef RUNNER_CLI_BENCH_TABLE_H
#define RUNNER_CLI_BENCH_TABLE_H

#include "runner/base/size.h"
#include "runner/cli/bench-run.h"

G_BEGIN_DECLS

typedef struct
{
  char *name;
  GPtrArray *lines; /* of owned char *: what the row changes, each as after --set */
  gboolean is_budget;
  char *refusal;                      /* (nullable): why it cannot be measured */
  RnBenchResult result;               /* of the first repetition, with times that are medians over all */
  GArray *seconds;                    /* of double, by repetition: of one iteration */
  double ratio, ratio_min, ratio_max; /* to base, of the same repetition: median, least and most */
} RnBenchRow;

typedef struct
{
  GPtrArray *rows; /* of RnBenchRow; the first is base: the file as it is */
  int batch, height, width, threads;
  char *device;
  int repeat;
} RnBenchTable;

/*
 * @names: rows beside base: base, all, budget, names of strategies, or several of them joined by "+"; NULL:
 * those that users know. @root: of the file: a row that it has already is refused. Errors:
 * RN_CONFIG_ERROR_USAGE.
 */
RnBenchTable *rn_bench_table_new (char **names, const RnNode *root, GError **error);
void rn_bench_table_free (RnBenchTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBenchTable, rn_bench_table_free)

typedef struct
{
  char *const *arguments; /* of `runner bench --single --json` for base, without the program; NULL-ended */
  int repeat;
  guint64 budget_bytes; /* of the row "budget"; 0: three fifths of what base needs */
} RnBenchTableOptions;

/*
 * Runs all of it. Returns 0, or the exit code of the program after it has said why: base cannot run, or a
 * signal came.
 */
int rn_bench_table_run (RnBenchTable *table, const RnBenchTableOptions *options);

/* ---- bench-print.c ---- */

/* Times of the repetitions to ratios and medians. */
void rn_bench_table_finish (RnBenchTable *table);
void rn_bench_table_print_text (const RnBenchTable *table, gboolean check);
void rn_bench_table_print_json (const RnBenchTable *table);
/* Bars of memory and time. G_FILE_ERROR. */
gboolean rn_bench_table_write_png (const RnBenchTable *table, const char *title, const char *path,
                                   GError **error);

/* ---- bench-child.c ---- */

typedef struct
{
  int code;   /* of its exit; 128 + n: killed by signal n */
  int signal; /* that came to this process meanwhile, 0: none; the child is gone then */
  GString *out, *err;
} RnBenchChild;

/* Runs this program with @arguments (NULL-ended, without its name) to its end. G_SPAWN_ERROR. */
gboolean rn_bench_child_run (char *const *arguments, RnBenchChild *child, GError **error);
void rn_bench_child_clear (RnBenchChild *child);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnBenchChild, rn_bench_child_clear)

G_END_DECLS

#endif
