/* interpreter.h: runs a graph without a plan: every value has memory of its own, every op runs in order. */
#ifndef TESTS_GRAPH_INTERPRETER_H
#define TESTS_GRAPH_INTERPRETER_H

#include "graph/graph.h"

typedef struct
{
  RnGraph *graph;   /* lent */
  RnDevice *device; /* lent */
  void **memory;    /* [values], NULL for those of the parameter set */
  RnOpCall *calls;  /* [ops] */
  RnPrepared *prepared;
  void *workspace; /* as large as the largest */
} Interpreter;

Interpreter *interpreter_new (RnGraph *graph, RnDevice *device);
void interpreter_free (Interpreter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Interpreter, interpreter_free)

void *interpreter_address (const Interpreter *self, RnValueId value);
/* Runs ops [first, end). */
void interpreter_run (Interpreter *self, int first, int end);

#endif
