/* bench-pairs.h: a configuration against itself with further lines, step by step in turn. */
#ifndef RUNNER_CLI_BENCH_PAIRS_H
#define RUNNER_CLI_BENCH_PAIRS_H

#include "runner/cli/bench-run.h"

G_BEGIN_DECLS

/* With the lines over without, of a pair. */
typedef struct
{
  double median, least, most;
} RnBenchRatio;

typedef struct
{
  GArray *seconds[2];   /* of double, by pair, of one iteration: without and with the lines */
  GArray *processor[2]; /* the same, of all threads together while they ran */
  RnBenchRatio time, processor_time;
  double predicted; /* the same by the cost model of plans, see graph/cost.h */
  double loss[2];   /* of the last iteration */
} RnBenchPairs;

/*
 * rn_bench_pairs_run:
 * @jobs: without and with the lines; programs planned, nothing reserved
 * @n_pairs, @n_warmup: pairs of steps that count, and those before them
 *
 * Both jobs live in this process, and so does their memory. What else the machine does falls on both steps of
 * a pair, which begin by turns. Errors: as rn_bench_run.
 */
gboolean rn_bench_pairs_run (RnJob *const jobs[2], int n_pairs, int n_warmup, RnBenchPairs *pairs,
                             GError **error);
void rn_bench_pairs_clear (RnBenchPairs *pairs);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnBenchPairs, rn_bench_pairs_clear)

void rn_bench_pairs_print_text (const RnBenchPairs *pairs);
void rn_bench_pairs_print_json (const RnBenchPairs *pairs);

G_END_DECLS

#endif
