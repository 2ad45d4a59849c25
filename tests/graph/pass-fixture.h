/* pass-fixture.h: a small network, before the passes and behind them. */
#ifndef TESTS_GRAPH_PASS_FIXTURE_H
#define TESTS_GRAPH_PASS_FIXTURE_H

#include "tests/graph/nets.h"

typedef void (*Net) (RnGraph *graph, const NetOptions *options);

typedef struct
{
  RnParamSet *params;
  RnGraph *graph;
} Fixture;

void fixture_clear (Fixture *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* The forward part. */
Fixture fixture_forward (RnMode mode, Net net, NetOptions options);
/* What the passes make of it; in NCHW. */
Fixture fixture_step (RnMode mode, Net net, NetOptions options, gboolean fold);

int fixture_count (const Fixture *f, RnOp op);
/* The index of the first such op, which there must be. */
int fixture_find (const Fixture *f, RnOp op, const char *scope);

#endif
